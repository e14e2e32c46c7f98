"""Archives of points with several objectives, compared with literal twins."""

import csv
import io
import json
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polarbear as pb
from polarbear.errors import DataError


@st.composite
def tables(draw):
    """Points of three runs on two instances: few distinct values, several at one time."""
    rows = []
    for instance in ("i", "j"):
        for name in "abc":
            for _ in range(draw(st.integers(1, 4))):
                point = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
                rows.append((name, instance, draw(st.integers(1, 4)), *point))
    return dict(
        zip(("algorithm", "instance", "time", "f", "g"), zip(*rows, strict=True), strict=True)
    )


def front(table, name, instance, time):
    rows = zip(*table.values(), strict=True)
    return [(f, g) for a, i, t, f, g in rows if (a, i) == (name, instance) and t <= time]


def covers(first, second):
    return bool(first) and all(any(p[0] <= q[0] and p[1] <= q[1] for p in first) for q in second)


def make(table, **options):
    return pb.readers.Archives.from_frame(
        table, objectives=("f", "g"), direction="minimize", until=5, **options
    )


@settings(max_examples=30)
@given(tables())
def test_dominance_and_lottery_against_the_definition(table):
    archives = make(table)
    ahead = archives.dominance([1, 2, 4]).ahead()
    lottery = pb.rank(archives.scalarise(6), [1, 2, 4])
    for t, time in enumerate((1, 2, 4)):
        for c, instance in enumerate(("i", "j")):
            fronts = [front(table, name, instance, time) for name in "abc"]
            for a in range(3):
                for b in range(3):
                    both = covers(fronts[a], fronts[b]), covers(fronts[b], fronts[a])
                    assert ahead[t, c, a, b] == (both == (True, False))
                    if both[0]:  # whatever the weights, it is never behind
                        mine = lottery.instance == c
                        entry = lottery.offset[:-1][mine]
                        assert (
                            lottery.position[t, entry + a] <= lottery.position[t, entry + b]
                        ).all()


@settings(max_examples=15)
@given(tables())
def test_monotone_transformations_of_objectives_change_nothing(table):
    changed = dict(
        table, f=[v**3 - 7 for v in table["f"]], g=[float(np.exp(v)) for v in table["g"]]
    )
    one, other = make(table), make(changed)
    first, second = (pb.rank(a.scalarise(5), [1, 2, 4]) for a in (one, other))
    assert np.array_equal(first.position, second.position)
    assert np.array_equal(one.dominance([1, 4]).position, other.dominance([1, 4]).position)


@settings(max_examples=15)
@given(tables())
def test_hypervolume_counts_cells(table):
    """With whole numbers, the hypervolume is the number of unit cells that a point dominates."""
    pytest.importorskip("moocore")
    runs = make(table).hypervolume(reference={"i": [4, 4], "j": [4, 4]}, times=[1, 3])
    for run in runs:
        points = front(table, run.algorithm, run.instance, 3)
        cells = sum(covers(points, [(x, y)]) for x in range(4) for y in range(4))
        assert max([0, *run.value]) == cells


def test_views_are_paired_repetitions_and_the_order_is_stated():
    rows = [(a, i, r, t, f, 5 - f + (a == "b")) for a in "ab" for i in "xy" for r in (0, 1)
            for t, f in ((1, 4), (2, 2), (3, 1))]  # fmt: skip
    names = ("algorithm", "instance", "repetition", "time", "f", "g")
    archives = make(dict(zip(names, zip(*rows, strict=True), strict=True)))
    runs = archives.scalarise(8)
    assert sorted(set(runs.repetition.tolist())) == list(range(16))
    assert pb.rank(runs, [3]).win_rate("a", "b")[0] > 0.7
    posterior = pb.fit(runs, times=[1, 3])
    assert "8 random scalarisations of the ranks of f, g" in str(posterior.verdict())
    assert runs.filter(algorithms=["a"]).order_by == runs.order_by
    file = io.BytesIO()
    runs.to_parquet(file)
    assert pb.Runs.from_parquet(file) == runs
    with pytest.raises(DataError, match="ioh has no place for runs ordered by 8 random"):
        pb.write(runs, "nowhere", format="ioh")
    varied = archives.hypervolume([1.1, 2.0], times=[1, 2, 3])
    assert len(varied) == 2 * len(archives.runs)
    assert "reference at 1.1, 2 of nadir" in str(pb.rank(varied, [3]))
    spread = archives.indicator(lambda points, _: float(np.ptp(points[:, 0])), [3], name="spread")
    assert spread.value.max() == 3.0
    with pytest.raises(DataError, match="expected the names of several columns"):
        pb.readers.Archives.from_frame({}, objectives="f", direction="minimize")


FILES = Path(__file__).parents[1] / "readers" / "files" / "objectives"
"""Written by COCO, IOHprofiler and pymoo themselves, with every evaluation; see make.py there."""


def evaluations(source, leave_out=()):
    """The archives of the evaluations that the solvers wrote themselves."""
    with (FILES / "evaluations.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["source"] == source]
    rows = [row for row in rows if row["algorithm"] not in leave_out and row["feasible"] == "True"]
    columns = {name: [row[name] for row in rows] for name in ("algorithm", "instance")}
    columns |= {
        name: [float(row[name]) for row in rows] for name in ("repetition", "time", "f1", "f2")
    }
    return pb.readers.Archives.from_frame(
        columns, objectives=("f1", "f2"), direction="minimize", until=40
    )


def assert_same(archives, truth, digits=1e-12):
    assert [run.name() for run in archives.runs] == [run.name() for run in truth.runs]
    assert archives.runs.until.tolist() == truth.runs.until.tolist()
    assert archives.offset.tolist() == truth.offset.tolist()
    assert archives.time.tolist() == truth.time.tolist()
    np.testing.assert_allclose(archives.points, truth.points, rtol=digits, atol=digits)


def test_archives_of_coco_are_what_was_evaluated(tmp_path):
    """Two runs of an algorithm on an instance are in one file."""
    assert_same(pb.readers.read_archives(FILES / "coco"), evaluations("coco"))
    alone = pb.readers.read_archives(FILES / "coco" / "local")
    assert alone.runs.algorithms == ("local",)
    (tmp_path / "bbob-biobj_f01_i01_d02_nondom_final.adat").write_text("")
    with pytest.raises(DataError, match="holds the points of the end alone; log with log_nondom"):
        pb.readers.read_archives(tmp_path)
    (tmp_path / "bbob-biobj_f01_i01_d02_nondom_final.adat").unlink()
    (tmp_path / "bbob-biobj_f01_i01_d02_nondom_all.adat").write_text("1 2 3\n")
    with pytest.raises(DataError, match="line 1: expected '% instance ='"):
        pb.readers.read_archives(tmp_path)


def test_the_indicator_of_coco_is_the_missing_hypervolume():
    """COCO normalises by the ideal and the nadir point, which it does not log."""
    runs = pb.read(FILES / "coco")
    assert runs.order_by == "the indicator hyp of COCO"
    assert "ordered by  the indicator hyp of COCO" in str(runs)
    assert [run.name() for run in runs] == [run.name() for run in evaluations("coco").runs]
    assert runs.until.tolist() == [40.0] * 12
    times = evaluations("coco")
    for r, run in enumerate(runs):  # it changes only when the archive does
        assert {*run.time.tolist()} <= {*times.time[times.offset[r] : times.offset[r + 1]].tolist()}
        assert (np.diff(run.value) < 0).all()
    with pytest.raises(DataError, match="use pb.read"):
        pb.readers.read_archives(FILES.parent / "coco" / "bbob-biobj")
    with pytest.raises(DataError, match="different indicators"):
        pb.read(FILES.parent / "coco")


def test_logs_of_ioh_are_what_was_evaluated(tmp_path):
    with pytest.warns(
        pb.errors.DataWarning, match=r"2 runs logged only points that improve the first"
    ):
        archives = pb.readers.read_archives(FILES / "ioh")
    assert archives.objectives == ("raw_y", "F2")
    with warnings.catch_warnings(record=True) as seen:
        for name, other in (("local", "random"), ("random", "local")):
            one = pb.readers.read_archives(FILES / "ioh" / name)
            assert_same(one, evaluations("ioh", ("partial", other)), 1e-9)
    assert not seen
    with pytest.raises(DataError, match=r"objectives \(raw_y, F2\); read them with pb.read"):
        pb.read(FILES / "ioh" / "local")
    shutil.copytree(FILES / "ioh" / "local", tmp_path / "local")
    index = tmp_path / "local" / "IOHprofiler_f1_Sphere.json"
    index.write_text(index.read_text().replace('"maximization": false', '"maximization": true'))
    assert (pb.readers.read_archives(tmp_path).points < 0).all()  # costs
    assert_same(
        pb.readers.read_archives(tmp_path, direction="minimize"),
        evaluations("ioh", ("partial", "random")),
        1e-9,
    )


def test_the_first_objective_of_ioh_may_be_logged_twice_and_there_may_be_many(tmp_path):
    shutil.copytree(FILES / "ioh" / "local", tmp_path / "local")
    data = next(tmp_path.rglob("*.dat"))
    lines = [line.split() for line in data.read_text().splitlines()]
    more = [
        [*line[:2], *(["F1", "F2", "F10"] if line[1] == "raw_y" else [line[1], line[2], "5"])]
        for line in lines
    ]
    data.write_text("\n".join(" ".join(line) for line in more))
    archives = pb.readers.read_archives(tmp_path)
    assert archives.objectives == ("F1", "F2", "F10")
    np.testing.assert_allclose(
        archives.points[:, :2], evaluations("ioh", ("partial", "random")).points, atol=1e-9
    )


def make_history(generations):
    """A stand-in of pymoo's result, from what the history of a real one held."""

    def individuals(rows):
        return [SimpleNamespace(F=np.array(r["F"]), FEAS=np.array(r["FEAS"])) for r in rows]

    return SimpleNamespace(
        history=[
            SimpleNamespace(
                evaluator=SimpleNamespace(n_eval=one["n_eval"]),
                off=np.array(individuals(one["off"]), dtype=object),
                pop=individuals(one["pop"]),
            )
            for one in generations
        ]
    )


def test_histories_of_pymoo_are_what_was_evaluated():
    """Offspring that do not survive count, and infeasible points do not."""
    recorded = {one["algorithm"]: one for one in json.loads((FILES / "pymoo.json").read_text())}
    nsga2 = make_history(recorded["NSGA2"]["history"])
    archives = pb.readers.read_archives({("NSGA2", "osy"): nsga2})
    assert_same(archives, evaluations("pymoo", ("MOEAD",)))
    # Of the offspring of a generation, MOEA/D keeps those that are in the population.
    moead = make_history(recorded["MOEAD"]["history"])
    partial = pb.readers.read_archives({("MOEAD", "zdt1", 7): moead})
    truth = evaluations("pymoo", ("NSGA2",))
    assert partial.runs.repetition.tolist() == [7]
    assert (partial.points[:, None] >= truth.points).all(axis=2).any(axis=1).all()
    assert len(partial.time) < len(truth.time)
    with pytest.raises(DataError, match="save_history=True"):
        pb.readers.read_archives({("NSGA2", "zdt1"): SimpleNamespace(history=[])})
    for generation in nsga2.history:
        for one in (*generation.off, *generation.pop):
            one.FEAS = np.array([False])
    assert len(pb.readers.read_archives({("NSGA2", "osy"): nsga2}).time) == 0


def test_real_results_of_pymoo():
    """The stand-in above has the attributes of a real result."""
    pytest.importorskip("pymoo")
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.optimize import minimize
    from pymoo.problems import get_problem

    result = minimize(
        get_problem("osy"), NSGA2(pop_size=10), ("n_eval", 40), seed=1, save_history=True
    )
    archives = pb.readers.read_archives({("NSGA2", "osy"): result})
    assert_same(archives, evaluations("pymoo", ("MOEAD",)))


def test_tables_of_points(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("algorithm,instance,time,f,g\na,i,1,2,3\nb,i,2,1,4\n")
    assert len(pb.readers.read_archives(path, objectives=("f", "g"))) == 2
    with pytest.raises(DataError, match="needs the columns of its objectives"):
        pb.readers.read_archives(path)
    with (FILES / "evaluations.csv").open() as file:
        rows = [row for row in csv.reader(file) if row[0] in {"source", "coco"}]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([row[1:] for row in rows])
    table = pb.readers.read_archives(path, objectives=("f1", "f2"), until=40)
    assert_same(table, evaluations("coco"))


def test_what_a_run_found_last_counts_after_its_end():
    """Once, a run that ended between two times of the grid had no value for ever."""
    pytest.importorskip("moocore")
    records = [
        pb.Run("a", "i", [20, 50], [(3.0, 1.0), (1.0, 1.0)], 50, status=pb.Status.FINISHED),
        pb.Run("b", "i", [10], [(2.0, 2.0)], 100, status=pb.Status.CUT),
    ]
    archives = pb.readers.Archives.from_records(records, objectives="fg", direction="minimize")
    runs = archives.hypervolume(times=[10, 100], reference={"i": [4, 4]})
    assert runs.at([10, 100]).tolist() == [[-np.inf, 9], [4, 4]]


def test_a_reference_point_is_in_the_units_of_the_objectives():
    pytest.importorskip("moocore")
    records = [pb.Run("a", "i", [1], [(0.8, 0.8)], 50)]
    archives = pb.readers.Archives.from_records(records, objectives="fg", direction="maximize")
    found = archives.hypervolume(times=[10], reference={"i": [0.5, 0.5]}).at([10])
    assert found == pytest.approx(0.09)


def test_views_of_a_run_end_as_it_did():
    records = [pb.Run("a", name, [1], [(3.0, 1.0)], 100) for name in "xyz"]
    records += [pb.Run("b", name, [1], [(2.0, 2.0)], 20) for name in "xy"]
    archives = pb.readers.Archives.from_records(records, objectives="fg", direction="minimize")
    assert archives.scalarise(4).count_statuses() == {"cut": 12, "finished": 8}
