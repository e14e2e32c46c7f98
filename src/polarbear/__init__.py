"""PolarBear: which optimisation algorithm should I run when I do not know my budget?

Public names are imported when first used, so that ``import polarbear`` is fast and needs no
other package::

    import polarbear as pb

    runs = pb.read("results/")            # files, folders or a data frame -> Runs
    rankings = pb.rank(runs)              # the order of the runs at each time -> Rankings
    posterior = pb.fit(rankings)          # ratings with their uncertainty -> Posterior
    pb.select(posterior, risk=0.05)       # the algorithm to run -> Selection
    pb.report(posterior, "report.html")   # all results on an interactive page
"""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    with open(f"{__file__}i", encoding="utf-8") as stub:  # noqa: PTH123 (pathlib is slow to import)
        lines = [line.split() for line in stub if line.startswith("from ")]
    homes = {words[-1]: words[1] for words in lines}  # from HOME import NAME as NAME
    if name == "__all__":
        return sorted([*homes, "__version__"])
    if name not in homes:
        raise AttributeError(f"module 'polarbear' has no attribute {name!r}")
    from importlib import import_module

    home = homes[name]
    public = None if home == __name__ else getattr(import_module(home), name, None)
    if public is None:  # a module
        public = import_module(f"{home}.{name}")
    globals()[name] = public
    return public


def __dir__() -> object:  # the names, sorted
    return __getattr__("__all__")
