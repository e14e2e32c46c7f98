"""``LOG_FORMATS``: the solvers whose logs are known, each a row of regular expressions.

To add a solver, add a row. ``logs.py`` applies the rows to files.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from re import Pattern

from polarbear.data.run import Direction, Status

_compile = re.compile

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_TIME_STAMP = r"(?:(?:[0-9.]+/)?(?P<time>(?:[0-9]+:[0-9]+:)?[0-9]+(?:\.[0-9]+)?)[ \t]+)?"
_STAMPED_LINE = r"(?:[0-9.]+/)?(?P<time>(?:[0-9]+:[0-9]+:)?[0-9]+\.[0-9]+)(?:[ \t].*)?"
_WATCHED_TIME = r"WCTIME=(?P<time>[\d.]+)"  # runsolver writes it to a file beside the log


@dataclass(frozen=True)
class LogFormat:
    """The format of a solver's logs, as regular expressions that match whole lines.

    Attributes
    ----------
    name, what
        The name for ``read(format=...)``, and a line for the table of formats.
    recognise
        Matches a line that only logs of this solver have; ``None`` for a pattern of the user.
    progress
        Lines with a group ``time`` and any of ``value``, ``unit`` (ms, s, m, h, d), ``bound``,
        or ``lower`` and ``upper``, between which better values may still be.
    until
        Lines with the exact time of the end, in the group ``time``. A group ``wall`` replaces it
        where ``wall_clock`` matched a line.
    best, best_bound
        The final value and bound, with more digits than ``progress`` has.
    directions
        Lines that tell the direction; without one it is inferred from a value and a bound.
    optimal, endings
        Lines that say that the best value is proven to be optimal, or how else the run ended. A
        run that was stopped by a limit of time or nodes, or by its user, counts as cut.
    no_solution, no_objective
        Lines that say that ``best`` is not a solution, and that there is nothing to optimise.
    whole_seconds, stamped, negates
        Whether times without a decimal point are whole seconds, rounded down; whether times are
        those of a filter such as ts; whether maximised values have the opposite sign in progress.
    start, model
        The first line of a solve, and the line (or its first group) that tells two models apart,
        where a file can hold several solves.
    seed, instance
        Lines of the head, with a group of this name.
    solver
        The algorithm, where neither the path nor the user names one.
    """

    name: str
    what: str
    recognise: Pattern[str] | None
    progress: tuple[Pattern[str], ...]
    until: tuple[Pattern[str], ...] = ()
    best: Pattern[str] | None = None
    best_bound: Pattern[str] | None = None
    directions: Mapping[Pattern[str], Direction] = field(default_factory=dict)
    optimal: Pattern[str] | None = None
    endings: Mapping[Pattern[str], Status] = field(default_factory=dict)
    no_solution: Pattern[str] | None = None
    no_objective: Pattern[str] | None = None
    whole_seconds: bool = False
    stamped: bool = False
    negates: bool = False
    wall_clock: Pattern[str] | None = None
    start: Pattern[str] | None = None
    model: Pattern[str] | None = None
    seed: Pattern[str] | None = None
    instance: Pattern[str] | None = None
    solver: str | None = None


CP_SAT = LogFormat(
    "cpsat",
    "CP-SAT of OR-tools (log_search_progress)",
    recognise=_compile(r"Starting CP-SAT solver v.*"),
    progress=(
        _compile(
            r"#(?:\d+|Bound)\s+(?P<time>[\d.]+)s best:(?P<value>\S+)\s+"
            r"next:\[(?:(?P<lower>[^],]*),(?P<upper>[^],]*))?\].*"
        ),
    ),
    until=(_compile(r"walltime: (?P<time>\S+)"), _compile(r"#\w+\s+(?P<time>[\d.]+)s .*")),
    best=_compile(r"objective: (?P<value>(?!NA)\S+)"),
    best_bound=_compile(r"best_bound: (?P<value>(?!NA)\S+)"),
    directions={
        _compile(r"#Bound\s.*best:inf\s.*"): "minimize",
        _compile(r"#Bound\s.*best:-inf\s.*"): "maximize",
    },
    optimal=_compile(r"status: OPTIMAL"),
    endings={
        _compile(r"status: INFEASIBLE"): Status.FINISHED,
        _compile(r"status: MODEL_INVALID"): Status.CRASHED,
    },
    # The report of a run without a solution has "objective: 0".
    no_solution=_compile(r"status: (?:UNKNOWN|INFEASIBLE|MODEL_INVALID)"),
    no_objective=_compile(r"#\d+\s+[\d.]+s (?!best:).*"),
    start=_compile(r"Starting CP-SAT solver v.*"),
    model=_compile(r"Initial .*model .*\(model_fingerprint: \w+\)"),
    seed=_compile(r"Parameters:.*\brandom_seed: (?P<seed>\d+)\b.*"),
    instance=_compile(r"Initial .*model '(?P<instance>.+)': .*"),
    solver="CP-SAT",
)

ROUTING = LogFormat(
    "routing",
    "routing of OR-tools (log_search)",
    recognise=_compile(r".{0,100}\bsearch\.cc:\d+\] Start search .*"),
    progress=(
        _compile(
            r".{0,100}\bsearch\.cc:\d+\] Solution #\d+ \((?P<value>[^,\s]+), "
            r"(?:[^,=]*=[^,]*, )*?time = (?P<time>\d+) (?P<unit>ms),.*"
        ),
    ),
    until=(
        _compile(r".{0,100}\bsearch\.cc:\d+\] End search \(time = (?P<time>\d+) (?P<unit>ms),.*"),
    ),
    directions={_compile(r".{0,100}\bsearch\.cc:\d+\] Start search .*"): "minimize"},
    solver="OR-tools routing",
)

GUROBI = LogFormat(
    "gurobi",
    "Gurobi (LogFile or console)",
    recognise=_compile(r"Gurobi (?:Optimizer version|\d+\.\d+\.\d+) .*"),
    progress=(
        _compile(
            r"[ H*]\s*\d+\s+\d+\s+(?:\S+\s+){0,3}?(?P<value>\S+)\s+(?P<bound>\S+)\s+"
            r"(?:[\d.]+%|-)\s+\S+\s+(?P<time>\d+)s"
        ),
    ),
    until=(
        _compile(r"Explored \d+ nodes? .* in (?P<time>[\d.]+) seconds.*"),
        _compile(r"(?:Stopped|Solved) in \d+ .* and (?P<time>[\d.]+) seconds.*"),
    ),
    best=_compile(rf"Best objective (?P<value>{_NUMBER}), best bound .*"),
    best_bound=_compile(rf"Best objective .*, best bound (?P<value>{_NUMBER}), gap .*"),
    directions={
        _compile(r"Optimize a model with .*\(Min\)"): "minimize",
        _compile(r"Optimize a model with .*\(Max\)"): "maximize",
    },
    optimal=_compile(r"Optimal solution found.*"),
    endings={
        _compile(r"Model is .*(?:infeasible|unbounded).*|Infeasible.* model"): Status.FINISHED,
        _compile(r"Solution limit reached.*|Optimization achieved .*"): Status.FINISHED,
        _compile(r"(?:Memory limit reached|Out of memory|.*out of memory).*"): Status.OUT_OF_MEMORY,
    },
    whole_seconds=True,
    start=_compile(r"Gurobi (?:Optimizer version|\d+\.\d+\.\d+) .*"),
    model=_compile(r"Model fingerprint: \w+"),
    seed=_compile(r"(?:Set parameter Seed to value|Seed) +(?P<seed>\d+)"),
    instance=_compile(r"Read \w+ format model from file (?P<instance>.+)"),
    solver="Gurobi",
)

XPRESS = LogFormat(
    "xpress",
    "FICO Xpress",
    recognise=_compile(r"FICO Xpress v.*"),
    progress=(
        _compile(r" \*\*\* Solution found:\s+(?P<value>\S+)\s+Time:\s+(?P<time>\d+\.\d+)\s.*"),
        _compile(
            r"[a-zA-Z* ]?\s*(?:\d+\s+)?(?:[A-Z]\s+)?(?P<value>[-+]?\d*\.\d+(?:e[-+]?\d+)?)\s+"
            r"(?P<bound>\S+)\s+\d+\s+(?:\d+\s+\d+\s+)?(?:[\d.]+%|-+)\s+\d+\s+(?P<time>\d+)"
        ),
    ),
    until=(
        _compile(r"\s+Solution time / primaldual integral :\s+(?P<time>[\d.]+)s.*"),
        _compile(r" \*\*\* Search \w+ \*\*\*\s+Time:\s+(?P<time>[\d.]+).*"),
    ),
    best=_compile(r"Final MIP objective\s+: (?P<value>\S+)"),
    best_bound=_compile(r"Final MIP bound\s+: (?P<value>\S+)"),
    directions={
        _compile(r"Minimizing \w+ .*"): "minimize",
        _compile(r"Maximizing \w+ .*"): "maximize",
    },
    endings={
        _compile(r" \*\*\* Search completed \*\*\*.*"): Status.FINISHED,
        _compile(r".*[Pp]roblem is (?:\w+ )?(?:infeasible|unbounded).*"): Status.FINISHED,
        _compile(r".*(?:[Oo]ut of memory|MAXMEMORY).*"): Status.OUT_OF_MEMORY,
    },
    no_solution=_compile(r"\s+Number of solutions found / nodes\s+:\s+0 /.*"),
    whole_seconds=True,
    start=_compile(r"FICO Xpress v.*"),
    model=_compile(r"((?:Min|Max)imizing \w+ \S+) .*"),
    seed=_compile(r"RANDOMSEED = (?P<seed>\d+)"),
    instance=_compile(r"(?:Min|Max)imizing \w+ (?P<instance>\S+) using .*"),
    solver="Xpress",
)

COPT = LogFormat(
    "copt",
    "COPT (Cardinal Optimizer)",
    recognise=_compile(r"(?:Using )?Cardinal Optimizer v.*"),
    progress=(
        _compile(
            r"[ H*]\s*\d+\s+\d+\s+\S+\s+\d+\s+(?P<bound>\S+)\s+(?P<value>\S+)\s+\S+\s+"
            r"(?P<time>[\d.]+)s"
        ),
    ),
    until=(_compile(r"Solve time\s+: (?P<time>[\d.]+)"),),
    best=_compile(rf"Best solution\s+: (?P<value>{_NUMBER})"),
    best_bound=_compile(rf"Best bound\s+: (?P<value>{_NUMBER})"),
    directions={
        _compile(r"Minimizing an? .* problem"): "minimize",
        _compile(r"Maximizing an? .* problem"): "maximize",
    },
    optimal=_compile(r"MIP status\s+: solved"),
    endings={
        _compile(r"MIP status\s+: .*(?:infeasible|unbounded).*"): Status.FINISHED,
        _compile(r"MIP status\s+: .*memory.*"): Status.OUT_OF_MEMORY,
    },
    start=_compile(r"Model fingerprint: \w+"),
    model=_compile(r"Model fingerprint: \w+"),
    instance=_compile(r"Reading from '(?P<instance>.+)'"),
    solver="COPT",
)

CBC = LogFormat(
    "cbc",
    "CBC, also by PuLP",
    recognise=_compile(r"Welcome to the CBC MILP Solver.*"),
    progress=(
        _compile(
            r"Cbc00\d\dI Integer solution of (?P<value>\S+) found .*\((?P<time>[\d.]+) seconds\)"
        ),
        _compile(r"Cbc0010I After .*, best possible (?P<bound>\S+) \((?P<time>[\d.]+) seconds\)"),
        _compile(
            r"Cbc0005I Partial search .*\(best possible (?P<bound>\S+)\), took .*"
            r"\((?P<time>[\d.]+) seconds\)"
        ),
        _compile(r"Cbc0001I Search completed .*\((?P<time>[\d.]+) seconds\)"),
    ),
    until=(
        _compile(
            r"Total time \(CPU seconds\):\s+(?P<time>[\d.]+)\s+"
            r"\(Wallclock seconds\):\s+(?P<wall>[\d.]+)"
        ),
    ),
    best=_compile(rf"Objective value:\s+(?P<value>{_NUMBER})"),
    directions={
        _compile(r"command line - (?:.* )?-max(?:imize)?(?: .*)?"): "maximize",
    },
    optimal=_compile(r"Result - Optimal solution found.*"),
    endings={
        _compile(r"Result - .*(?:infeasible|unbounded).*"): Status.FINISHED,
        _compile(r"Problem is (?:in|un).*"): Status.FINISHED,
        _compile(r"\*\* Current model not valid.*"): Status.CRASHED,
    },
    negates=True,
    wall_clock=_compile(r"Option for timeMode changed from \w+ to elapsed"),
    start=_compile(r"Welcome to the CBC MILP Solver.*"),
    model=_compile(r"Problem \S+ has \d+ rows, .*"),
    seed=_compile(r"randomCbcSeed was changed from \S+ to (?P<seed>\d+)"),
    instance=_compile(r"command line - \S+ (?P<instance>[^-\s]\S*) .*"),
    solver="CBC",
)

HIGHS = LogFormat(
    "highs",
    "HiGHS (log_file or console)",
    # A log file that was set after the model was built has no banner.
    recognise=_compile(r"Running HiGHS .*|Src  Proc\. InQueue \|.*"),
    progress=(
        _compile(
            r" .\s+\d+[km]?\s+\d+[km]?\s+\d+[km]?\s+[\d.]+%\s+(?P<bound>\S+)\s+(?P<value>\S+)"
            r"\s+\S+(?:\s+\S+){4}\s+(?P<time>[\d.]+)s"
        ),
    ),
    until=(_compile(r"  Timing\s+(?P<time>[\d.]+)(?: \(total\))?"),),
    best=_compile(r"  Primal bound\s+(?P<value>(?!-?inf)\S+)"),
    best_bound=_compile(r"  Dual bound\s+(?P<value>(?!-?inf)\S+)"),
    optimal=_compile(r"  Status\s+Optimal.*"),
    endings={
        _compile(r"  Status\s+(?:Infeasible|Unbounded|Primal infeasible).*"): Status.FINISHED,
        _compile(r"  Status\s+(?:Solution limit|.*[Tt]arget).*"): Status.FINISHED,
        _compile(r"  Status\s+.*[Mm]emory.*"): Status.OUT_OF_MEMORY,
        _compile(r"  Status\s+.*[Ee]rror.*"): Status.CRASHED,
    },
    start=_compile(r"(?:MIP|LP) .*has \d+ rows; .*"),
    model=_compile(r"(?:MIP|LP) .*has \d+ rows; .*"),
    instance=_compile(r"(?:MIP|LP) (?P<instance>\S+) has \d+ rows; .*"),
    solver="HiGHS",
)

SCIP = LogFormat(
    "scip",
    "SCIP",
    recognise=_compile(r"SCIP (?:version|Status) .*| time \| node .*primalbound.*"),
    progress=(
        _compile(
            r".?\s*(?P<time>[\d.]+)(?P<unit>[smhd])\|(?:[^|]*\|)*?\s*(?P<bound>[^|\s]+)\s*"
            r"\|\s*(?P<value>--|[-+]?\d\.\d+e[-+]\d+)\s*\|\s*(?:Inf|Large|[\d.]+%|-+)\s*"
            r"(?:\|[^|]*)?"
        ),
        _compile(
            r"feasible solution found by .* after (?P<time>[\d.]+) seconds, "
            r"objective value (?P<value>\S+)"
        ),
    ),
    until=(_compile(r"Solving Time \(sec\)\s*: (?P<time>[\d.]+)"),),
    best=_compile(r"Primal Bound\s*: (?P<value>\S+) \((?!0 |objective limit).*"),
    best_bound=_compile(r"Dual Bound\s*: (?P<value>\S+)"),
    optimal=_compile(r"SCIP Status\s*: problem is solved \[optimal.*"),
    endings={
        _compile(r"SCIP Status\s*: problem is solved (?!\[optimal).*"): Status.FINISHED,
        _compile(r"SCIP Status\s*: .*\[(?:solution|bestsolution|gap|primal).* limit.*"): (
            Status.FINISHED
        ),
        _compile(r"SCIP Status\s*: .*\[memory limit.*"): Status.OUT_OF_MEMORY,
    },
    solver="SCIP",
)

CPLEX = LogFormat(
    "cplex",
    "CPLEX, stamped with ts",
    recognise=_compile(
        _TIME_STAMP + r"(?:Version identifier: \d+\.\d+\.\d+\.\d+ \|.*|CPXPARAM_\w+ .*"
        r"|Welcome to IBM.*CPLEX.*|IBM.* CPLEX.* Optimizer .*)"
    ),
    progress=(
        _compile(
            _TIME_STAMP + r"\*\s*\d+\+?\s+\d+\s+(?:\S+\s+\d+\s+)?(?P<value>[-+]?\d+\.\d+\S*)\s+"
            r"(?P<bound>[-+]?\d+\.\d+\S*)\s+(?:\d+\s+)?(?:[\d.]+%|-+)"
        ),
        _compile(_TIME_STAMP + r"Found incumbent of value (?P<value>\S+) after .*"),
    ),
    until=(_compile(_STAMPED_LINE),),
    best=_compile(_TIME_STAMP + r"MIP - .*: +Objective = +(?P<value>\S+)"),
    endings={
        _compile(_TIME_STAMP + r"MIP - Integer .*(?:optimal|infeasible|unbounded).*"): (
            Status.FINISHED
        ),
        _compile(_TIME_STAMP + r".*CPLEX Error +1001: Out of memory.*"): Status.OUT_OF_MEMORY,
        _compile(_TIME_STAMP + r"MIP - Memory limit.*"): Status.OUT_OF_MEMORY,
    },
    stamped=True,
    solver="CPLEX",
)

GLPK = LogFormat(
    "glpk",
    "GLPK, stamped with ts",
    recognise=_compile(_TIME_STAMP + r"(?:GLPSOL.*GLPK .*|GLPK Integer Optimizer.*)"),
    progress=(
        _compile(
            _TIME_STAMP + r"\+\s*\d+: (?:mip =|>>>>>)\s+(?P<value>not found yet|\S+) [<>]=\s+"
            r"(?P<bound>\S+).*"
        ),
    ),
    until=(_compile(_STAMPED_LINE),),
    directions={
        _compile(_TIME_STAMP + r"\+\s*\d+: (?:mip =|>>>>>) .* >= .*"): "minimize",
        _compile(_TIME_STAMP + r"\+\s*\d+: (?:mip =|>>>>>) .* <= .*"): "maximize",
    },
    optimal=_compile(_TIME_STAMP + r"INTEGER OPTIMAL SOLUTION FOUND.*"),
    endings={
        _compile(_TIME_STAMP + r"PROBLEM HAS NO .* SOLUTION.*"): Status.FINISHED,
        _compile(_TIME_STAMP + r".*[Mm]emory allocation (?:error|limit).*"): Status.OUT_OF_MEMORY,
    },
    stamped=True,
    solver="GLPK",
)

TOULBAR2 = LogFormat(
    "toulbar2",
    "toulbar2, stamped with ts or runsolver",
    recognise=_compile(_TIME_STAMP + r"c \S*toulbar2\s+version.*"),
    progress=(
        _compile(_TIME_STAMP + r"New solution: (?P<value>\S+) \(.*"),
        _compile(_TIME_STAMP + r"Optimality gap: \[(?P<lower>[^],\s]+), (?P<upper>[^],\s]+)\] .*"),
    ),
    until=(_compile(_STAMPED_LINE), _compile(_WATCHED_TIME)),
    directions={_compile(_TIME_STAMP + r"c \S*toulbar2\s+version.*"): "minimize"},
    optimal=_compile(_TIME_STAMP + r"Optimum: .*"),
    endings={
        _compile(_TIME_STAMP + r"No solution .*"): Status.FINISHED,
        _compile(r"MEMOUT=true"): Status.OUT_OF_MEMORY,
    },
    stamped=True,
    solver="toulbar2",
)

O_LINES = LogFormat(
    "o-lines",
    "`o` lines of MaxSAT and PB solvers, stamped with ts or runsolver",
    recognise=_compile(_TIME_STAMP + r"(?:o [-+]?[0-9]+|s (?:OPTIMUM|SAT|UNSAT|UNKNOWN).*)\s*"),
    progress=(_compile(_TIME_STAMP + r"o (?P<value>[-+]?[0-9]+)\s*"),),
    until=(_compile(_TIME_STAMP + r"\S.*"), _compile(_WATCHED_TIME)),
    directions={_compile(_TIME_STAMP + r"(?:o [-+]?[0-9]+|s [A-Z].*)\s*"): "minimize"},
    optimal=_compile(_TIME_STAMP + r"s OPTIMUM FOUND\s*"),
    endings={
        _compile(_TIME_STAMP + r"s UNSATISFIABLE\s*"): Status.FINISHED,
        _compile(r"MEMOUT=true"): Status.OUT_OF_MEMORY,
    },
    stamped=True,
)

LOG_FORMATS = (
    CP_SAT,
    ROUTING,
    GUROBI,
    XPRESS,
    COPT,
    CBC,
    HIGHS,
    SCIP,
    CPLEX,
    GLPK,
    TOULBAR2,
    O_LINES,
)
"""The solvers, in the order in which they are tried; o lines last, as other solvers print them."""
