"""The tables in Markdown, and the figure, from what the cells hold."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from calibration.cells import Arrays, Cell, Model, load
from calibration.models import EVIDENCE
from calibration.races import ALPHA, LOOKS
from numpy.typing import NDArray

from polarbear.calibration.tally import Estimate, Tally, estimate_ratio
from polarbear.plots import Cast, calibration
from polarbear.simulation import PRIORS

Results = Mapping[str, Mapping[Model, Arrays]]

HEAD = (
    "How often what the posteriors claim is true. README.md says what each table shows;\n"
    "`python studies/calibration/run.py` makes them. Replicates are data sets; the standard error\n"
    "of a figure is between replicates, and each table says its largest."
)


def collect(cells: Iterable[Cell], folder: Path) -> dict[str, Results]:
    """What was measured, by part, cell and model."""
    found: dict[str, dict[str, dict[Model, Arrays]]] = {}
    for cell in cells:
        found.setdefault(cell.part, {})[cell.name] = load(cell.path(folder))
    return {**found}


def write(found: Mapping[str, Results], folder: Path) -> str:
    """All tables, to ``table.md``."""
    parts = [
        HEAD,
        *_known(found.get("known", {})),
        *_recorded(found.get("recorded", {})),
        *_refined(found.get("refined", {})),
        *_identical(found.get("identical", {})),
        *_races(found.get("race", {})),
        *_price(found.get("price", {})),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    (folder / "table.md").write_text(text)
    return text


def tally(results: Results, model: Model, pattern: str = ".*") -> Tally | None:
    """The replicates of a model in all cells whose name fits."""
    parts = [
        Tally(**one[model])
        for name, one in results.items()
        if re.fullmatch(pattern, name) and model in one
    ]
    return Tally.concat(parts) if parts else None


def _models(results: Results) -> list[Model]:
    seen = dict.fromkeys(model for one in results.values() for model in one)
    order = list(EVIDENCE)
    priors = list(PRIORS)
    return sorted(seen, key=lambda m: (priors.index(m.prior), -order.index(m.evidence)))


def _table(
    title: str,
    results: Results,
    columns: Mapping[str, Callable[[Model], Sequence[Estimate | str]]],
) -> str:
    """A row for each model, a column for each name; several figures in one cell share it."""
    errors: list[float] = []
    rows = []
    for model in _models(results):
        line = []
        for figures in columns.values():
            shown = []
            for figure in figures(model):
                if isinstance(figure, Estimate):
                    errors += [figure.error] if figure.error >= 0 else []
                    shown.append(f"{figure.value:.3f}" if figure.cases else "-")
                else:
                    shown.append(figure)
            line.append(" / ".join(shown))
        rows.append(f"| {model.prior} | {EVIDENCE[model.evidence]} | {' | '.join(line)} |")
    if not rows:
        return ""
    counted = {len(next(iter(one[m].values()))) for one in results.values() for m in one}
    said = f"{min(counted)} to {max(counted)}" if len(counted) > 1 else f"{counted.pop()}"
    worst = f"; standard errors up to {max(errors):.3f}" if errors else ""
    head = f"| prior | evidence | {' | '.join(columns)} |"
    rule = "|" + "---|" * (2 + len(columns))
    return "\n".join([f"### {title}", "", f"Replicates: {said}{worst}.", "", head, rule, *rows])


def _pick(results: Results, patterns: Iterable[str], of: Callable[[Tally], Estimate | str]):
    """The figure ``of`` a model's tally in each of some groups of cells."""

    def figures(model: Model) -> list[Estimate | str]:
        parts = [tally(results, model, pattern) for pattern in patterns]
        return ["-" if part is None else of(part) for part in parts]

    return figures


def _values(results: Results, letter: str) -> list[str]:
    """The values of a letter in the names of cells, such as T10-L0.5-P64, in their order."""
    found = [re.search(rf"{letter}([\w.]+)", name) for name in results]
    return list(dict.fromkeys(match[1] for match in found if match))


def _known(results: Results) -> list[str]:
    if not results:
        return []
    lasting, sizes = _values(results, "L"), _values(results, "P")
    parts = ["## (a) Known truth, luck that persists for L of the range of times"]
    for n_times in _values(results, "T"):
        columns = {}
        for lasts in lasting:
            patterns = [f"T{n_times}-L{re.escape(lasts)}-P{size}" for size in sizes]
            columns[f"L={lasts}"] = _pick(results, patterns, lambda part: part.coverage)
        title = f"Coverage of 95 % intervals of log-ratios, T={n_times}, P={' / '.join(sizes)}"
        parts.append(_table(title, results, columns))
    parts += _claims(results, {f"L={lasts}": f".*-L{re.escape(lasts)}-.*" for lasts in lasting})
    return parts


def _recorded(results: Results) -> list[str]:
    if not results:
        return []
    pools = list(dict.fromkeys(name.rsplit("-", 1)[0] for name in results))
    sizes = _values(results, "P")
    columns = {
        pool: _pick(results, [f"{pool}-P{size}" for size in sizes], lambda part: part.coverage)
        for pool in pools
    }
    title = f"Coverage of 95 % intervals of log-ratios, P={' / '.join(sizes)}"
    head = "## (b) Recorded runs, truth is the Plackett-Luce model nearest to the pool, T=30"
    return [
        head,
        _table(title, results, columns),
        *_claims(results, {pool: f"{pool}-.*" for pool in pools}),
    ]


def _claims(results: Results, groups: Mapping[str, str]) -> list[str]:
    """What claims of who is ahead were worth, over all T and P."""
    wrong, curve, joint = {}, {}, {}
    for name, pattern in groups.items():
        one = [pattern]
        wrong[f"{name}: .95-.99 / ≥.99"] = _both(
            _pick(results, one, lambda part: part.wrong(0.95, 0.99)),
            _pick(results, one, lambda part: part.wrong(0.99)),
        )
        for low, high in ((0.5, 0.8), (0.8, 0.95), (0.95, 0.99)):
            joint[f"{name}: {low}-{high}"] = _arrow(results, pattern, "everywhere", low, high)
        curve[name] = _both(
            *(
                _arrow(results, pattern, "ahead", low, high)
                for low, high in ((0.5, 0.7), (0.7, 0.9), (0.9, 0.95), (0.95, 0.99), (0.99, 1.0))
            )
        )
    return [
        _table("Wrong among claims of who is ahead at a time", results, wrong),
        _table("Claimed→true, who is ahead at a time: .5-.7, -.9, -.95, -.99, -1", results, curve),
        _table("Claimed→true, ahead at all times", results, joint),
    ]


def _both(*figures: Callable[[Model], Sequence[Estimate | str]]):
    return lambda model: [one for figure in figures for one in figure(model)]


def _arrow(results: Results, pattern: str, kind: str, low: float, high: float):
    def shown(part: Tally) -> str:
        found = part.claims(low, high, kind)
        if not found.true.cases:
            return "-"
        return f"{found.claimed:.2f}→{found.true.value:.2f}±{found.true.error:.2f}"

    return _pick(results, [pattern], shown)


def _refined(results: Results) -> list[str]:
    if not results:
        return []

    def figures(kind: str) -> Callable[[Model], list[Estimate | str]]:
        def of(model: Model) -> list[Estimate | str]:
            one = results[kind].get(model)
            if one is None:
                return ["-"]
            return [estimate_ratio(one["sums"][:, k], one["cases"][:, k]) for k in range(4)]

        return of

    title = "Change / growth of P(ahead) at common times, change / growth of P(ahead everywhere)"
    head = "## (c) The same 64 runs asked at 10 times and at 100 (55 for recorded runs)"
    return [head, _table(title, results, {kind: figures(kind) for kind in results})]


def sequential(certainty: float, n: int, instances: int) -> float:
    """Return the certainty to ask for at a look, by spending the error 1 - certainty over looks.

    Equal parts for all ordered pairs, and parts of 1/2, 1/6, 1/12, ... for looks at 8 to 15, 16 to
    31, ... instances; half of each is kept for looks between doublings.
    """
    claims = max(1, n * (n - 1))
    epoch = 1 + max(0, int(np.log2(max(instances, 1) / 8)))
    return 1 - (1 - certainty) / (2 * claims * epoch * (epoch + 1))


def _lost(one: Arrays, certainty: float, mode: int, looks: Sequence[int], n: int) -> NDArray:
    """Which replicates eliminate at some look: by a fixed certainty, or for n > 0 sequential."""
    limit = np.array([sequential(certainty, n, look) if n else certainty for look in looks])
    seen = one["strongest"][:, :, mode]
    return np.any(seen >= limit[: seen.shape[1]], axis=1)


def _shares(
    results: Results, looks: Sequence[int], n: int, members: int = 1
) -> Callable[[str], Callable[[Model], list[Estimate | str]]]:
    """Pointwise, joint, and for n > 0 sequential joint, at each certainty."""

    def of(cell: str) -> Callable[[Model], list[Estimate | str]]:
        def figures(model: Model) -> list[Estimate | str]:
            one = results[cell].get(model)
            if one is None:
                return ["-"]
            whole = np.full(len(one["strongest"]), float(members))
            asked = [(0, 0), (1, 0), *([(1, n)] if n else [])]
            return [
                estimate_ratio(_lost(one, certainty, mode, looks, rule).astype(float), whole)
                for certainty in ALPHA
                for mode, rule in asked
            ]

        return figures

    return of


def _identical(results: Results) -> list[str]:
    if not results:
        return []
    # Each of the two is a member of the Pareto set; they are never both out, and alike by design.
    of = _shares(results, [1], 0, members=2)
    title = "Of two identical algorithms, a given one eliminated: pointwise / joint at .95, at .99"
    head = "## (d) Two identical algorithms, one order for all times, P=32, one look"
    return [head, _table(title, results, {cell: of(cell) for cell in results})]


def _races(results: Results) -> list[str]:
    if not results:
        return []
    of = _shares(results, LOOKS, 5)
    title = "Races that lose a member: pointwise / joint / joint and sequential at .95, at .99"
    head = (
        "## (e) Five nearly equal algorithms, all Pareto members, looks at 8, 16, ... 376 instances"
    )
    return [head, _table(title, results, {cell: of(cell) for cell in results})]


def _price(results: Results) -> list[str]:
    """When the one that is dominated is eliminated: the median number of instances."""
    found = {m: one for cell in results.values() for m, one in cell.items()}
    if not found:
        return []
    lines = ["### Instances until one that is dominated is eliminated (joint), median; not by 376"]
    lines += ["", "| prior | evidence | certainty | fixed | sequential |", "|---|---|---|---|---|"]
    for model, one in found.items():
        for certainty in ALPHA:
            shown = []
            for n in (0, 5):
                limit = [sequential(certainty, n, look) if n else certainty for look in LOOKS]
                sure = one["strongest"][:, :, 1] >= np.array(limit)
                first = np.where(sure.any(axis=1), np.array(LOOKS)[sure.argmax(axis=1)], np.inf)
                shown.append(f"{np.median(first):.0f}; {np.mean(np.isinf(first)):.2f}")
            said = f"{model.prior} | {EVIDENCE[model.evidence]} | {certainty} | {' | '.join(shown)}"
            lines.append(f"| {said} |")
    return ["\n".join(lines)]


def figure(found: Mapping[str, Results], folder: Path) -> None:
    """Claimed against true for every model: luck of half the range, and recorded runs."""
    try:
        import matplotlib as mpl
    except ImportError:
        return
    mpl.use("Agg")
    from matplotlib import pyplot

    shown = [("known", ".*-L0.5-.*", "known truth, L=0.5"), ("recorded", ".*", "recorded runs")]
    kinds = [kind for kind in EVIDENCE if any(m.evidence == kind for m in _all(found))]
    sheet, axes = pyplot.subplots(len(kinds), 2, figsize=(9, 4 * len(kinds)), squeeze=False)
    looks = Cast.of(PRIORS).styles()
    for line, kind in zip(axes, kinds, strict=True):
        for axis, (part, pattern, title) in zip(line, shown, strict=True):
            results = found.get(part, {})
            for model in _models(results):
                counted = tally(results, model, pattern)
                if model.evidence == kind and counted is not None:
                    look = looks[model.prior]
                    calibration(
                        counted, axis, colour=look.colour, marker=look.marker, label=model.prior
                    )
            axis.set_title(f"{title}, {EVIDENCE[kind]}", fontsize=9)
    fullest = max(axes.flat, key=lambda axis: len(axis.get_legend_handles_labels()[0]))
    if fullest.get_legend_handles_labels()[0]:
        fullest.legend(fontsize=7, loc="upper left", bbox_to_anchor=(0.0, 0.9))
    sheet.tight_layout()
    sheet.savefig(folder / "curve.svg", metadata={"Date": None})
    pyplot.close(sheet)


def _all(found: Mapping[str, Results]) -> set[Model]:
    return {model for results in found.values() for one in results.values() for model in one}
