"""Logs of solvers: files that the solvers wrote, solvers themselves, and hand-cut files."""

import csv
import gzip
import re
import shutil
import subprocess
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polarbear import DataError, Run, Runs, Status, read
from polarbear.errors import DataWarning
from polarbear.readers import FORMATS
from polarbear.readers.log_formats import LOG_FORMATS

FILES = Path(__file__).parent / "files"


def quiet_read(path, **options) -> Runs:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return read(path, **options)


def text_of(solver: str, name: str) -> str:
    return gzip.decompress((FILES / solver / f"{name}.log.gz").read_bytes()).decode()


def read_truth(path: Path) -> list[tuple[float, float]]:
    """Times and values that a callback of the same run saw."""
    with path.open() as file:
        return [(float(row["time"]), float(row["value"])) for row in csv.DictReader(file)]


def assert_same_improvements(runs: Runs, truth: list[tuple[float, float]], step: float) -> None:
    """Check a run against a callback, where the log prints times with this step.

    No value is invented, none is earlier than it was found, and none is missing or late by more
    than a step.
    """
    (run,) = runs
    slack = 0.02  # a callback and the log look at the clock one after the other
    seen = Run("a", "i", [t for t, _ in truth], [v for _, v in truth], run.until + 1)
    improvements = Runs.from_records([seen], direction=runs.direction)
    for time, value in zip(run.time, run.value, strict=True):
        found = improvements.time[np.isclose(improvements.value, value, rtol=1e-7)]
        assert len(found), f"{value} was never found"
        assert np.min(np.abs(time - found)) <= step + slack
        assert time >= found.min() - slack - (step / 2 if step < 1 else 0)
    for time, value in zip(improvements.time, improvements.value, strict=True):
        read_value = runs.at([min(time + step + slack, run.until)])[0, 0]
        sign = 1 if runs.direction == "minimize" else -1
        assert sign * read_value <= sign * value + 1e-7 * abs(value)


class TestCallbacks:
    """Logs hold exactly the improvements that callbacks recorded, to the precision of the log."""

    @pytest.mark.parametrize(
        "name",
        [
            "default__bigmax__1", "default__bigmin__1", "default__js10__1", "default__js30__2",
            "default__knap60__1", "interleaved__js10__1", "lns__js30__1", "single__js10__1",
            "single__js30__1",
        ],
    )  # fmt: skip
    def test_cp_sat(self, name):
        runs = read(FILES / "cpsat" / f"{name}.log.gz")
        assert_same_improvements(runs, read_truth(FILES / "cpsat" / f"{name}.callback.csv"), 0.01)

    @pytest.mark.parametrize(
        "name",
        [
            "default__cover400__1", "default__knap100__2", "default__solutionlimit__1",
            "default__tiny__1", "mipfocus1__cover400__1",
        ],
    )  # fmt: skip
    def test_gurobi(self, name):
        with pytest.warns(DataWarning, match="Gurobi prints whole seconds, rounded down"):
            runs = read(FILES / "gurobi" / f"{name}.log.gz")
        assert_same_improvements(runs, read_truth(FILES / "gurobi" / f"{name}.callback.csv"), 1.0)

    def test_gurobi_prints_no_time_before_the_root(self):
        """The no-relaxation heuristic ran for 3 s, and the first line with a time is at 4 s."""
        (run,) = quiet_read(FILES / "gurobi" / "norel__cover400__1.log.gz")
        assert_array_equal(run.time, [5, 8])
        assert_allclose(run.value, [55845.677, 54666.545])
        truth = read_truth(FILES / "gurobi" / "norel__cover400__1.callback.csv")
        assert {55845.677, 54666.545} <= {round(value, 6) for _, value in truth}


class TestSolvers:
    """What is in logs without a callback, read by eye."""

    @pytest.mark.parametrize(
        ("file", "direction", "n", "first", "last", "until"),
        [
            ("cpsat/ortools9.8__knap80__0", "maximize", 6, (0.04, 2236), (0.68, 2255), 0.825537),
            ("gurobi/gurobi12__cover300__0", "minimize", 1, (1, 41020.422), (1, 41020.422), 3),
            ("copt/default__cover400__1", "minimize", 7, (0.01, 402130.6), (4.08, 56174.902), 6.01),
            ("copt/default__tiny__1", "maximize", 6, (0.02, 0), (1.09, 13721.085), 1.14),
            ("xpress/default__cover400__1", "minimize", 3, (0.02, 71599.853), (1, 54516.621), 6.07),
            ("xpress/default__knap100__1", "maximize", 4, (0.01, 26813.097), (6, 44140.462), 6),
            ("xpress/default__tiny__1", "maximize", 3, (0, 0), (0.06, 13721.085), 0.06),
            ("cbc/default__cover400__1", "minimize", 1, (0.52, 56341.034), (0.52, 56341.034), 6.05),
            ("cbc/pulp__cover400__1", "minimize", 1, (1.11, 54425.451), (1.11, 54425.451), 6.38),
            ("cbc/pulp__knap100__1", "maximize", 3, (0.19, 44046.253), (2.4, 44140.462), 3.61),
            ("routing/gls__vrp60__0", "minimize", 21, (0.005, 7618), (0.292, 6675), 2.998),
            ("toulbar2/toulbar2__cover200__1", "minimize", 49, (0.001785, 2402),
             (6.117776, 1187), 7.907217),
            ("highs/default__cover400__1", "minimize", 5, (0, 400623.266), (4.7, 54751.637), 6.03),
            ("highs/default__knap100__2", "maximize", 3, (0, 42741.509), (1.2, 44097.916), 5),
            ("scip/default__cover400__1", "minimize", 2, (0, 402130.6), (0.1, 70742.855), 6),
        ],
    )  # fmt: skip
    def test_trajectories(self, file, direction, n, first, last, until):
        runs = quiet_read(FILES / f"{file}.log.gz")
        (run,) = runs
        assert runs.direction == direction
        assert len(run.time) == n
        assert_allclose((run.time[0], run.value[0]), first, rtol=1e-9)
        assert_allclose((run.time[-1], run.value[-1]), last, rtol=1e-9)
        assert run.until == until
        name, instance, seed = Path(file).name.split("__")
        assert run.name() == f"{name} on {instance} (repetition {seed})"

    @pytest.mark.parametrize(
        ("file", "status"),
        [
            ("cpsat/default__knap60__1", Status.FINISHED),
            ("cpsat/default__pigeons__1", Status.FINISHED),  # infeasible
            ("cpsat/single__tiny_limit__1", Status.CUT),  # "objective: 0", but no solution
            ("cpsat/single__js30__1", Status.CUT),
            ("gurobi/default__infeasible__1", Status.FINISHED),
            ("gurobi/default__nosolution__1", Status.CUT),
            ("gurobi/default__solutionlimit__1", Status.FINISHED),
            ("gurobi/default__tiny__1", Status.FINISHED),
            ("gurobi/default__cover400__1", Status.CUT),
            ("copt/default__cover400__1", Status.CUT),
            ("copt/default__knap100__1", Status.CUT),  # "Best solution: -inf"
            ("copt/default__tiny__1", Status.FINISHED),
            ("xpress/default__cover400__1", Status.CUT),
            ("xpress/default__tiny__1", Status.FINISHED),
            ("cbc/pulp__infeasible__1", Status.FINISHED),
            ("cbc/pulp__tiny__1", Status.FINISHED),
            ("cbc/pulp__cover400__1", Status.CUT),
        ],
    )
    def test_ends(self, file, status):
        direction = None if "pigeons" not in file and "tiny_limit" not in file else "minimize"
        (run,) = quiet_read(FILES / f"{file}.log.gz", direction=direction)
        assert run.status is status
        without = ("pigeons", "tiny_limit", "infeasible", "nosolution", "copt/default__knap100")
        assert (len(run.value) == 0) == any(part in file for part in without)

    @pytest.mark.parametrize(
        ("solver", "name", "old", "new", "status"),
        [
            ("gurobi", "default__cover400__1", "Time limit reached", "Memory limit reached",
             Status.OUT_OF_MEMORY),
            ("gurobi", "default__cover400__1", "Time limit reached", "Solve interrupted",
             Status.CUT),
            ("gurobi", "default__infeasible__1", "Model is infeasible", "Model is unbounded",
             Status.FINISHED),
            ("copt", "default__cover400__1", "stopped (time limit reached)", "unbounded",
             Status.FINISHED),
            ("cpsat", "default__pigeons__1", "status: INFEASIBLE", "status: MODEL_INVALID",
             Status.CRASHED),
            ("cbc", "default__cover400__1", "Result - Stopped on time limit",
             "Result - User ctrl-c", Status.CUT),
            ("cbc", "pulp__infeasible__1", "Problem is infeasible - 0.00 seconds",
             "** Current model not valid", Status.CRASHED),
            ("highs", "default__cover400__1", "Time limit reached", "Memory limit reached",
             Status.OUT_OF_MEMORY),
            ("highs", "default__cover400__1", "Time limit reached", "Interrupted by user",
             Status.CUT),
            ("scip", "default__cover400__1", "[time limit reached]", "[memory limit reached]",
             Status.OUT_OF_MEMORY),
            ("scip", "default__cover400__1", "[time limit reached]", "[user interrupt]",
             Status.CUT),
        ],
    )  # fmt: skip
    def test_other_ends(self, tmp_path, solver, name, old, new, status):
        """Ends for which no log is at hand: the line that tells them is put into another log."""
        text = text_of(solver, name)
        assert old in text
        (tmp_path / "a__i.log").write_text(text.replace(old, new))
        assert quiet_read(tmp_path, direction=None if "inf" not in name and solver != "cpsat"
                          else "maximize")[0].status is status  # fmt: skip

    @pytest.mark.parametrize("file", [
        "cpsat/default__js10__1", "gurobi/default__knap100__2", "copt/default__cover400__1",
        "xpress/default__knap100__1", "cbc/pulp__knap100__1", "highs/default__cover400__1",
        "scip/default__cover400__1", "toulbar2/toulbar2__cover200__1", "routing/gls__vrp60__0",
    ])  # fmt: skip
    def test_a_log_that_ends_in_the_middle_is_cut(self, tmp_path, file):
        """A killed solver leaves the start of its log, and what it had found holds until then."""
        whole = quiet_read(FILES / f"{file}.log.gz")
        lines = gzip.decompress((FILES / f"{file}.log.gz").read_bytes()).decode().split("\n")
        rows = [i for i, line in enumerate(lines) if line.strip()]
        (tmp_path / "a__i.log").write_text("\n".join(lines[: rows[len(rows) * 8 // 10]]))
        (run,) = quiet_read(tmp_path)
        assert run.status is Status.CUT
        assert run.until <= whole[0].until + 1
        n = min(len(run.value), len(whole.value)) - 1
        assert n >= 0
        assert_allclose(run.value[:n], whole.value[:n])

    def test_a_model_without_an_objective_is_refused(self):
        with pytest.raises(DataError, match="line 114: a solution without an objective"):
            read(FILES / "cpsat" / "satisfaction__js5__1.log.gz")

    def test_cbc_counts_cpu_seconds_unless_told_otherwise(self):
        with pytest.warns(DataWarning, match="CPU seconds.*-timeMode elapsed"):
            read(FILES / "cbc" / "default__cover400__1.log.gz")

    def test_stamps_count_where_a_solver_prints_whole_seconds(self, tmp_path):
        name = "default__cover400__1"
        truth = read_truth(FILES / "gurobi" / f"{name}.callback.csv")
        lines, now = [], 0.0
        for line in text_of("gurobi", name).split("\n"):
            is_new = re.match(r"H.* (\d+\.\d+) \d+\.\d+ +[\d.]+% ", line)
            if is_new:
                now = next(time for time, value in truth if f"{value:.6f}" == is_new[1])
            now = 8.01 if line.startswith("Explored") else now
            lines.append(f"{now:.6f} {line}")
        (tmp_path / f"{name}.log").write_text("\n".join(lines))
        runs = read(tmp_path)  # without a warning
        assert_same_improvements(runs, truth, 0.001)
        assert (len(runs.value), runs[0].until) == (13, 8.01)

    @pytest.mark.parametrize("solver", ["cplex", "glpk"])
    def test_logs_without_times_are_refused_with_the_line_that_stamps_them(self, solver, tmp_path):
        name = "default__tiny__1"
        with pytest.raises(DataError, match=r"no time before the value.* \| ts -s '%\.s'"):
            read(FILES / solver / f"{name}.log.gz")
        lines = text_of(solver, name).rstrip().split("\n")
        stamped = [f"{0.25 * i:.6f} {line}" for i, line in enumerate(lines)]
        (tmp_path / f"{name}.log").write_text("\n".join(stamped))
        runs = read(tmp_path)
        assert runs.direction == "maximize"
        assert runs[0].value[-1] == 13721.085
        assert runs[0].until == 0.25 * (len(lines) - 1)
        assert runs[0].status is (Status.CUT if solver == "cplex" else Status.FINISHED)

    def test_lines_that_a_filter_held_back_are_noticed(self):
        with pytest.warns(DataWarning, match="clasp-buffered.*stamped at nearly the same time"):
            read(FILES / "olines" / "clasp-buffered__cover200__1.log.gz")

    def test_runsolver(self):
        solved, stopped = read(FILES / "runsolver")
        assert (solved.status, stopped.status) == (Status.FINISHED, Status.CUT)
        assert solved.until == 0.025186  # the exact time in the .var file
        assert_array_equal(stopped.value[-2:], [2021, 2005])
        assert stopped.time[-1] == 2.41

    def test_runsolver_saw_too_much_memory(self, tmp_path):
        for file in (FILES / "runsolver").glob("clasp__c1__1.*"):
            text = gzip.decompress(file.read_bytes()).decode().replace("s OPTIMUM FOUND", "c")
            text = text.replace("MEMOUT=false", "MEMOUT=true")
            (tmp_path / file.name.removesuffix(".gz")).write_text(text)
        assert read(tmp_path)[0].status is Status.OUT_OF_MEMORY


class TestFormats:
    def test_each_solver_is_a_row_of_the_table(self):
        rows = {row.name: row for row in FORMATS}
        assert {log.name for log in LOG_FORMATS} <= set(rows)
        assert all(rows[log.name].part_of == "logs" and log.what for log in LOG_FORMATS)

    @pytest.mark.parametrize("file", [
        "cpsat/default__js10__1", "gurobi/default__tiny__1", "copt/default__tiny__1",
        "xpress/default__tiny__1", "cbc/pulp__tiny__1", "highs/default__cover400__1",
        "scip/default__cover400__1", "toulbar2/toulbar2__cover200__1", "routing/gls__vrp60__0",
    ])  # fmt: skip
    def test_the_name_of_a_solver_selects_its_logs(self, file):
        solver, path = file.split("/")[0], FILES / f"{file}.log.gz"
        assert quiet_read(path, format=solver) == quiet_read(path)
        other = "scip" if solver != "scip" else "highs"
        with pytest.raises(DataError, match=f"(?i){path.name} is not a log of {other}"):
            quiet_read(path, format=other)

    def test_a_folder_of_several_solvers(self, tmp_path):
        for solver, name in [("gurobi", "default__tiny__1"), ("copt", "default__tiny__1"),
                             ("cbc", "pulp__tiny__1"), ("xpress", "default__tiny__1")]:  # fmt: skip
            (tmp_path / solver).mkdir()
            (tmp_path / solver / "tiny.log").write_text(text_of(solver, name))
        runs = quiet_read(tmp_path)
        assert runs.algorithms == ("cbc", "copt", "gurobi", "xpress")
        assert runs.instances == ("tiny",)
        assert_allclose(runs.at([9])[:, 0], 13721.085)


class TestSeveralSolves:
    """Gurobi appends to its log file, and scripts may print several solves."""

    def test_solves_of_one_model_are_repetitions(self, tmp_path):
        parts = [text_of("gurobi", name) for name in ("default__cover400__1", "norel__cover400__1")]
        (tmp_path / "Gurobi__cover400.log").write_text("".join(parts))
        with pytest.warns(DataWarning) as caught:
            runs = read(tmp_path)
        assert any("holds 2 solves of one model" in str(one.message) for one in caught)
        assert runs.repetition.tolist() == [0, 1]
        assert_allclose(runs[0].value[-1], 54538.907)
        assert_allclose(runs[1].value[-1], 54666.545)
        assert runs.until.tolist() == [8.0, 8.01]

    def test_seeds_number_them(self, tmp_path):
        one = text_of("cpsat", "single__js10__1")
        (tmp_path / "CP__js10.log").write_text(
            one + one.replace("random_seed: 1", "random_seed: 5")
        )
        with pytest.warns(DataWarning, match="by their seeds"):
            runs = read(tmp_path)
        assert runs.repetition.tolist() == [1, 5]
        assert_array_equal(runs[0].value, runs[1].value)

    def test_solves_of_different_models_are_refused(self, tmp_path):
        parts = [text_of("gurobi", f"default__{name}") for name in ("cover400__1", "knap100__2")]
        (tmp_path / "Gurobi__all.log").write_text("".join(parts))
        with pytest.raises(DataError, match=r"Gurobi__all.log: holds 2 solves of different models"):
            read(tmp_path)

    def test_solves_without_a_mark_between_them_are_refused(self, tmp_path):
        text = (FILES / "scip" / "gap_min.log").read_text()
        (tmp_path / "SCIP__all.log").write_text(text + text)
        with pytest.raises(DataError, match=r"SCIP__all.log: .*; write each"):
            read(tmp_path)

    def test_the_head_has_what_the_pattern_leaves_out(self, tmp_path):
        (tmp_path / "today.log").write_text(text_of("copt", "default__tiny__1"))
        (run,) = quiet_read(tmp_path, names=r"(?P<date>today)")
        assert run.name() == "COPT on tiny (repetition 0)"
        (tmp_path / "today.log").write_text(text_of("xpress", "default__cover400__1"))
        (run,) = quiet_read(tmp_path, names=r"(?P<date>today)")
        assert run.name() == "Xpress on cover400 (repetition 1)"


class TestBounds:
    @pytest.mark.parametrize(
        ("file", "first", "last"),
        [
            ("cpsat/default__knap60__1", (0.03, 3122), (1.03907, 1578)),
            ("cpsat/default__js10__1", (0.01, 586), (0.05, 763)),
            ("gurobi/default__cover400__1", (1, 48977.0652), (8, 49152.02137423)),
            ("copt/default__cover400__1", (0.01, 0), (6.01, 48933.53423826)),
            ("xpress/default__knap100__1", (1, 44542.77394), (6, 44197.78614401448)),
            ("cbc/pulp__knap100__1", (0.5, 44629.559), (3.61, 44140.462)),
            ("highs/default__cover400__1", (0.1, 0), (6.03, 48911.692)),
            ("scip/default__cover400__1", (0.1, 0), (5.8, 49024.893141797)),
            ("toulbar2/toulbar2__cover200__1", (0.001798, 742), (6.17104, 764)),
        ],
    )
    def test_bounds_are_trajectories_of_the_opposite_direction(self, file, first, last):
        runs = quiet_read(FILES / f"{file}.log.gz")
        assert {runs.direction, runs.bounds.direction} == {"minimize", "maximize"}
        assert runs.bounds[0].name() == runs[0].name()
        assert_allclose((runs.bounds.time[0], runs.bounds.value[0]), first)
        assert_allclose((runs.bounds.time[-1], runs.bounds.value[-1]), last)
        sign = 1 if runs.direction == "minimize" else -1
        best = sign * runs.value[-1]
        assert np.all(sign * runs.bounds.value <= best + 1e-9 * abs(best))

    def test_a_proof_is_a_bound(self):
        runs = read(FILES / "olines" / "clasp_wcnf_optimum_ts_s.log",
                    names=r"(?P<algorithm>\w+?)_(?P<instance>\w+)")  # fmt: skip
        assert runs.bounds[0].value.tolist() == [698]
        assert runs.bounds[0].time[0] == runs[0].until

    def test_routing_has_none(self):
        assert read(FILES / "routing" / "gls__vrp60__0.log.gz").bounds is None


CP_SAT_PROGRAM = """
import random
from ortools.sat.python import cp_model

rng = random.Random(1)
model = cp_model.CpModel()
pick = [model.new_bool_var("") for _ in range(40)]
for _ in range(5):
    weights = [rng.randint(5, 100) for _ in pick]
    model.add(sum(w * x for w, x in zip(weights, pick)) <= sum(weights) // 3)
model.maximize(sum(rng.randint(5, 100) * x for x in pick))
rows, lines = ["time,value"], []

class Watch(cp_model.CpSolverSolutionCallback):
    def on_solution_callback(self):
        rows.append(f"{self.wall_time},{self.objective_value}")

solver = cp_model.CpSolver()
solver.parameters.log_search_progress = True
solver.parameters.log_to_stdout = False
solver.parameters.num_workers = 1
solver.parameters.max_time_in_seconds = 1.0
solver.log_callback = lines.append
solver.solve(model, Watch())
open("CP-SAT__knapsack.log", "w").write("\\n".join(lines))
open("callback.csv", "w").write("\\n".join(rows))
"""


class TestLiveSolvers:
    def test_cp_sat(self, tmp_path):
        """In a process of its own, since OR-tools loads a HiGHS that highspy cannot work with."""
        if find_spec("ortools") is None:
            pytest.skip("OR-tools is not installed")
        subprocess.run([sys.executable, "-c", CP_SAT_PROGRAM], cwd=tmp_path, check=True)
        runs = read(tmp_path / "CP-SAT__knapsack.log")
        rows = read_truth(tmp_path / "callback.csv")
        assert_same_improvements(runs, rows, 0.01)
        assert runs[0].value[-1] == rows[-1][1]
        assert len(runs.bounds.value)

    def test_highs(self, tmp_path):
        highspy = pytest.importorskip("highspy")
        rng = np.random.default_rng(3)
        model, rows = highspy.Highs(), []
        model.cbMipImprovingSolution += lambda event: rows.append(
            (event.data_out.running_time, event.data_out.objective_function_value)
        )
        model.setOptionValue("output_flag", True)
        model.setOptionValue("log_to_console", False)
        model.setOptionValue("log_file", str(tmp_path / "HiGHS__knapsack__7.log"))
        pick = [model.addBinary() for _ in range(30)]
        for _ in range(5):
            weights = rng.integers(10, 100, 30)
            load = sum(int(w) * x for w, x in zip(weights, pick, strict=True))
            model.addConstr(load <= int(weights.sum() // 3))
        worth = [int(v) for v in rng.integers(10, 100, 30)]
        model.maximize(sum(v * x for v, x in zip(worth, pick, strict=True)))
        runs = read(tmp_path / "HiGHS__knapsack__7.log", direction="maximize")
        assert_same_improvements(runs, rows, 0.1)
        run = runs[0]
        assert run[:2] == ("HiGHS", "knapsack")
        assert run.repetition == 7
        assert run.value[-1] == pytest.approx(model.getObjectiveValue())
        assert run.status is Status.FINISHED

    def test_scip(self, tmp_path):
        scip = pytest.importorskip("pyscipopt")
        rng = np.random.default_rng(2)
        model, rows = scip.Model("knapsack"), []
        pick = [model.addVar(vtype="B") for _ in range(40)]
        for _ in range(5):
            weights = rng.integers(5, 100, 40).tolist()
            load = scip.quicksum(w * x for w, x in zip(weights, pick, strict=True))
            model.addCons(load <= sum(weights) / 3)
        worth = rng.integers(5, 100, 40).tolist()
        model.setObjective(
            scip.quicksum(w * x for w, x in zip(worth, pick, strict=True)), "maximize"
        )

        class Watch(scip.Eventhdlr):
            def eventinit(self):
                self.model.catchEvent(scip.SCIP_EVENTTYPE.BESTSOLFOUND, self)

            def eventexec(self, event):  # noqa: ARG002 (the name is SCIP's)
                value = self.model.getSolObjVal(self.model.getBestSol())
                rows.append((self.model.getSolvingTime(), value))

        model.includeEventhdlr(Watch(), "watch", "improvements")
        model.setParam("limits/time", 1.0)
        model.hideOutput(True)
        model.setLogfile(str(tmp_path / "SCIP__knapsack.log"))
        model.hideOutput(False)
        model.optimize()
        model.setLogfile(None)
        runs = read(tmp_path, direction="maximize")
        assert runs[0].value[-1] == pytest.approx(model.getObjVal())
        assert_same_improvements(runs, rows, 0.1)


class TestLogs:
    def test_highs(self):
        run = read(FILES / "highs" / "gap_min.log")[0]
        assert run[:2] == ("HiGHS", "gap_min")
        assert_allclose(run.time, [0.0, 0.1, 1.8, 2.9, 4.0])
        assert_allclose(run.value, [5531, 5194, 4902, 4831, 4796])
        assert run.until == 4.0
        assert run.status is Status.CUT
        solved = read(FILES / "highs" / "knap_max.log")
        assert solved.direction == "maximize"
        assert solved[0].value[-1] == 1288
        assert solved[0].status is Status.FINISHED

    def test_highs_before_1_6(self):
        run = read(FILES / "highs" / "gap_min_v1.5.3.log")[0]
        assert_allclose(run.value, [5194, 4813])
        assert run.until == 4.01

    @pytest.mark.parametrize("solver", ["highs", "scip"])
    def test_without_a_solution_there_is_no_value_and_no_direction(self, solver):
        for name, status in [("msplit", Status.CUT), ("infeas", Status.FINISHED)]:
            log = FILES / solver / f"{name}.log"
            with pytest.raises(DataError, match="the logs do not tell; pass direction="):
                read(log)
            run = read(log, direction="minimize")[0]
            assert len(run.value) == 0
            assert run.status is status

    def test_scip(self):
        run = read(FILES / "scip" / "gap_min.log")[0]
        assert_allclose(run.time, [0.0, 1.9, 3.0])
        assert_allclose(run.value, [5777, 5022, 4834])
        assert run.until == 4.0
        assert run.status is Status.CUT
        solved = read(FILES / "scip" / "knap_max.log")
        assert solved.direction == "maximize"
        assert solved[0].status is Status.FINISHED
        assert solved[0].until == 1.73

    @pytest.mark.parametrize(
        ("name", "n", "last", "until", "status"),
        [
            ("clasp_wcnf_optimum_ts_s", 83, 698, 0.379243, Status.FINISHED),
            ("clasp_opb_optimum_ts_epoch", 32, 295, 0.000376, Status.FINISHED),
            ("clasp_wcnf_timelimit_ts_hms", 36, 12334, 1.980176, Status.CUT),
            ("clasp_wcnf_unsat", 0, None, 0.0, Status.FINISHED),
            ("handmade_runsolver_timestamp", 4, 698, 0.38, Status.FINISHED),
        ],
    )
    def test_o_lines(self, name, n, last, until, status):
        runs = read(FILES / "olines" / f"{name}.log", names=r"(?P<algorithm>\w+)_(?P<instance>\w+)")
        assert runs.direction == "minimize"
        assert len(runs.value) == n
        assert not n or runs.value[-1] == last
        assert_allclose(runs.until, until, atol=1e-6)
        assert runs.algorithms[0].startswith(("clasp", "handmade"))
        assert runs[0].status is status

    def test_o_lines_without_a_time_say_what_to_do(self):
        with pytest.raises(DataError, match=r"line 4: no time before the value; .* ts -s"):
            read(FILES / "olines" / "clasp_wcnf_optimum.log")

    def test_a_pattern_of_ones_own_and_names_from_the_path(self, tmp_path):
        for solver in ("quick", "slow"):
            folder = tmp_path / "logs" / solver
            folder.mkdir(parents=True)
            for seed in (1, 2):
                log = f"start\n[{seed}.5s] new best: 10\nnoise\n[2.5s] new best: {seed}\n"
                (folder / f"city__{seed}.log").write_text(log)
        pattern = r"\[(?P<time>[\d.]+)s\] new best: (?P<value>\S+)"
        runs = read(tmp_path / "logs", pattern=pattern, direction="minimize")
        assert runs.algorithms == ("quick", "slow")
        assert runs.instances == ("city",)
        assert runs.repetition.tolist() == [1, 2, 1, 2]
        assert_array_equal(runs.at([2.0])[0], [10])
        named = read(
            tmp_path / "logs",
            pattern=pattern,
            names=r"(?P<algorithm>\w+)/(?P<instance>\w+?)__(?P<repetition>\d+)",
            direction="minimize",
        )
        assert named == runs

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"pattern": "("}, "pattern '\\(': "),
            ({"pattern": "x"}, "needs the groups"),
            ({"names": "("}, "names='\\(' has no field"),
            ({"names": "(?P<algorithm>"}, "names='\\(\\?P<algorithm>': missing"),
            ({"names": "x(?P<algorithm>.)"}, "no file fits names='x.*the first is .*log"),
            ({"names": "(?P<algorithm>.)"}, "gives no algorithm or no instance"),
        ],
    )
    def test_bad_patterns_are_explained(self, options, message):
        with pytest.raises(DataError, match=message):
            read(FILES / "scip" / "gap_min.log", direction="minimize", **options)

    def test_a_pattern_that_matches_nothing_is_an_error(self, tmp_path):
        (tmp_path / "a__b.log").write_text("best 3 at 4\n")
        with pytest.raises(DataError, match="matches no line of any log"):
            read(tmp_path, pattern=r"(?P<time>x) (?P<value>y)", direction="minimize")
        ours = r"best (?P<value>\d+) at (?P<time>\d+)"
        assert read(tmp_path, pattern=ours, direction="minimize", until=9)[0].until == 9
        with pytest.raises(DataError, match="the unit 'b' is not one of ms, s, m, h, d"):
            read(tmp_path, pattern=r"(?P<unit>b)est (?P<value>.) at (?P<time>.)")

    @pytest.mark.parametrize("name", ["p01.log", "p01__1.log", "a__b__1__c.log", "__b.log"])
    def test_a_name_that_does_not_tell_the_algorithm(self, tmp_path, name):
        (tmp_path / name).write_text("0.1 o 3\n")
        with pytest.raises(DataError, match=f"{name}: the name does not tell algorithm"):
            read(tmp_path)

    def test_the_exact_best_of_the_closing_report_counts(self, tmp_path):
        log = (FILES / "scip" / "gap_min.log").read_text()
        exact = log.replace("+4.83400000000000e+03", "+4.83350000000000e+03")
        assert exact != log
        (tmp_path / "gap.log").write_text(exact)
        assert read(tmp_path)[0].value[-1] == 4833.5
        rounded = log.replace("+4.83400000000000e+03", "+4.83400400000000e+03")
        (tmp_path / "gap.log").write_text(rounded)
        run = read(tmp_path, until=3600)[0]
        assert run.value[-1] == 4834.004
        assert run.time[-1] == 3.0  # the solution of the last row, not one found at the end

    def test_logs_of_both_directions(self, tmp_path):
        for name in ("gap_min.log", "knap_max.log"):
            shutil.copy(FILES / "highs" / name, tmp_path / name)
        with pytest.raises(DataError, match="some logs minimise and some maximise"):
            read(tmp_path)
        assert read(tmp_path, direction="minimize").instances == ("gap_min",)
        assert read(tmp_path, direction="maximize").instances == ("knap_max",)
        (tmp_path / "knap_max.log").unlink()
        with pytest.raises(DataError, match="holds no logs that maximize"):
            read(tmp_path, direction="maximize")

    def test_the_repetition_in_a_name_is_a_number(self, tmp_path):
        (tmp_path / "a__b__c.log").write_text("0.1 o 3\n")
        with pytest.raises(DataError, match="repetition 'c' in the path is not a whole number"):
            read(tmp_path)
