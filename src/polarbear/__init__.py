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

TYPE_CHECKING = (
    False  # type checkers take it for true; importing typing would double the import time
)
if TYPE_CHECKING:
    import polarbear.coordinator.frameworks as frameworks
    import polarbear.plots as plots
    import polarbear.priors as priors
    import polarbear.readers as readers
    import polarbear.simulation as simulation
    import polarbear.store as store
    from polarbear.calibration.resampling import calibrate
    from polarbear.coordinator.candidates import load_code
    from polarbear.coordinator.gate import Gate, gate
    from polarbear.coordinator.judge import Judge
    from polarbear.coordinator.judgement import Judgement
    from polarbear.coordinator.run_race import race
    from polarbear.data import grid, targets
    from polarbear.data.archives import Archives
    from polarbear.data.losses import losses
    from polarbear.data.rankings import Rankings, rank
    from polarbear.data.run import Run, Status
    from polarbear.data.runs import Runs
    from polarbear.errors import (
        DataError,
        DataWarning,
        FitError,
        FitWarning,
        MissingDependency,
        PolarBearError,
        SolverError,
        StoreError,
    )
    from polarbear.inference.cross_fitting import cross_fit
    from polarbear.inference.fit import fit
    from polarbear.inference.instance_posterior import InstancePosterior
    from polarbear.inference.posterior import Posterior
    from polarbear.inference.verdicts import (
        Verdict,
        assess,
        assess_classes,
    )
    from polarbear.racing.budget import Budget
    from polarbear.racing.questions.choice import Choice
    from polarbear.racing.questions.no_worse import NoWorse
    from polarbear.racing.questions.paper_pareto_set import PaperParetoSet
    from polarbear.racing.questions.pareto_set import ParetoSet
    from polarbear.racing.questions.question import Question
    from polarbear.racing.race import Race
    from polarbear.racing.replay import replay, replay_many
    from polarbear.racing.status import RaceStatus
    from polarbear.readers import example, read
    from polarbear.readers.pair_tables import read_pairs
    from polarbear.readers.point_archives import read_archives
    from polarbear.readers.ranking_tables import read_rankings
    from polarbear.readers.writing import write
    from polarbear.reporting.page import report
    from polarbear.running.backends.checking import check
    from polarbear.running.backends.local_processes import LocalProcesses
    from polarbear.running.backends.shared_folder import SharedFolder
    from polarbear.running.solvers.adapters import from_budgeted_class
    from polarbear.running.solvers.commands import Command
    from polarbear.running.solvers.instances import Instances
    from polarbear.running.solvers.setup import Limits
    from polarbear.selection import preferences
    from polarbear.selection.decision import select
    from polarbear.selection.instance_ratings import InstanceRatings, value_of_selection
    from polarbear.selection.ratings import Ratings
    from polarbear.store.opening import open_store

_HOME = {
    "Archives": "polarbear.data.archives",
    "Verdict": "polarbear.inference.verdicts",
    "assess": "polarbear.inference.verdicts",
    "assess_classes": "polarbear.inference.verdicts",
    "calibrate": "polarbear.calibration.resampling",
    "grid": "polarbear.data.grid",
    "targets": "polarbear.data.targets",
    "rank": "polarbear.data.rankings",
    "Rankings": "polarbear.data.rankings",
    "Run": "polarbear.data.run",
    "Runs": "polarbear.data.runs",
    "Status": "polarbear.data.run",
    "DataError": "polarbear.errors",
    "DataWarning": "polarbear.errors",
    "FitError": "polarbear.errors",
    "FitWarning": "polarbear.errors",
    "MissingDependency": "polarbear.errors",
    "PolarBearError": "polarbear.errors",
    "SolverError": "polarbear.errors",
    "StoreError": "polarbear.errors",
    "cross_fit": "polarbear.inference.cross_fitting",
    "fit": "polarbear.inference.fit",
    "InstancePosterior": "polarbear.inference.instance_posterior",
    "gate": "polarbear.coordinator.gate",
    "Gate": "polarbear.coordinator.gate",
    "frameworks": "polarbear.coordinator.frameworks",
    "Judge": "polarbear.coordinator.judge",
    "Judgement": "polarbear.coordinator.judgement",
    "load_code": "polarbear.coordinator.candidates",
    "race": "polarbear.coordinator.run_race",
    "Posterior": "polarbear.inference.posterior",
    "Race": "polarbear.racing.race",
    "RaceStatus": "polarbear.racing.status",
    "replay": "polarbear.racing.replay",
    "replay_many": "polarbear.racing.replay",
    "Budget": "polarbear.racing.budget",
    "Choice": "polarbear.racing.questions.choice",
    "NoWorse": "polarbear.racing.questions.no_worse",
    "PaperParetoSet": "polarbear.racing.questions.paper_pareto_set",
    "ParetoSet": "polarbear.racing.questions.pareto_set",
    "Question": "polarbear.racing.questions.question",
    "from_budgeted_class": "polarbear.running.solvers.adapters",
    "check": "polarbear.running.backends.checking",
    "Command": "polarbear.running.solvers.commands",
    "Instances": "polarbear.running.solvers.instances",
    "Limits": "polarbear.running.solvers.setup",
    "LocalProcesses": "polarbear.running.backends.local_processes",
    "SharedFolder": "polarbear.running.backends.shared_folder",
    "losses": "polarbear.data.losses",
    "preferences": "polarbear.selection.preferences",
    "plots": "polarbear.plots",
    "priors": "polarbear.priors",
    "InstanceRatings": "polarbear.selection.instance_ratings",
    "Ratings": "polarbear.selection.ratings",
    "value_of_selection": "polarbear.selection.instance_ratings",
    "readers": "polarbear.readers",
    "example": "polarbear.readers",
    "read": "polarbear.readers",
    "read_archives": "polarbear.readers.point_archives",
    "read_pairs": "polarbear.readers.pair_tables",
    "read_rankings": "polarbear.readers.ranking_tables",
    "write": "polarbear.readers.writing",
    "report": "polarbear.reporting.page",
    "select": "polarbear.selection.decision",
    "open_store": "polarbear.store.opening",
    "simulation": "polarbear.simulation",
    "store": "polarbear.store",
}

_PUBLIC_MODULES = (
    "frameworks",
    "grid",
    "plots",
    "preferences",
    "priors",
    "readers",
    "simulation",
    "store",
    "targets",
)

__all__ = [
    "Archives",
    "Budget",
    "Choice",
    "Command",
    "DataError",
    "DataWarning",
    "FitError",
    "FitWarning",
    "Gate",
    "InstancePosterior",
    "InstanceRatings",
    "Instances",
    "Judge",
    "Judgement",
    "Limits",
    "LocalProcesses",
    "MissingDependency",
    "NoWorse",
    "PaperParetoSet",
    "ParetoSet",
    "PolarBearError",
    "Posterior",
    "Question",
    "Race",
    "RaceStatus",
    "Rankings",
    "Ratings",
    "Run",
    "Runs",
    "SharedFolder",
    "SolverError",
    "Status",
    "StoreError",
    "Verdict",
    "__version__",
    "assess",
    "assess_classes",
    "calibrate",
    "check",
    "cross_fit",
    "example",
    "fit",
    "frameworks",
    "from_budgeted_class",
    "gate",
    "grid",
    "load_code",
    "losses",
    "open_store",
    "plots",
    "preferences",
    "priors",
    "race",
    "rank",
    "read",
    "read_archives",
    "read_pairs",
    "read_rankings",
    "readers",
    "replay",
    "replay_many",
    "report",
    "select",
    "simulation",
    "store",
    "targets",
    "value_of_selection",
    "write",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'polarbear' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_HOME[name])
    public = module if name in _PUBLIC_MODULES else getattr(module, name)
    globals()[name] = public
    return public


def __dir__() -> list[str]:
    return sorted(__all__)
