"""Archives of points with several objectives, compared with literal twins."""

import io
import json

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
    return pb.Archives.from_frame(
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
    assert "8 random scalarisations of the ranks of f, g" in posterior.verdict()
    assert runs.filter(algorithms=["a"]).order_by == runs.order_by
    file = io.BytesIO()
    runs.to_parquet(file)
    assert pb.Runs.from_parquet(file) == runs
    with pytest.raises(DataError, match="format='ioh' has no place for runs ordered by 8 random"):
        pb.write(runs, "nowhere", format="ioh")
    varied = archives.hypervolume([1.1, 2.0], times=[1, 2, 3])
    assert len(varied) == 2 * len(archives.runs)
    assert "reference at 1.1, 2 of nadir" in str(pb.rank(varied, [3]))
    spread = archives.indicator(lambda points, _: float(np.ptp(points[:, 0])), [3], name="spread")
    assert spread.value.max() == 3.0
    with pytest.raises(DataError, match="expected the names of several columns"):
        pb.Archives.from_frame({}, objectives="f", direction="minimize")


def test_read_archives_of_tables_coco_and_ioh(tmp_path):
    csv = tmp_path / "points.csv"
    csv.write_text("algorithm,instance,time,f,g\na,i,1,2,3\nb,i,2,1,4\n")
    assert len(pb.read_archives(csv, objectives=("f", "g"))) == 2
    with pytest.raises(DataError, match="needs the columns of its objectives"):
        pb.read_archives(csv)
    folder = tmp_path / "RS" / "archive"
    folder.mkdir(parents=True)
    (tmp_path / "RS" / "hyp.info").write_text(
        "suite = 'bbob-biobj', algorithm = 'random', indicator = 'hyp', folder = 'x'\n% random\n"
        "function =  1, dim =  2, bbob-biobj_f01_d02_hyp.dat, 1:30|6.5e+01\n"
    )
    (folder / "bbob-biobj_f01_i02_d02_nondom_all.adat").write_text(
        "% instance = 2, name = bbob_f001_i03_d02__bbob_f001_i05_d02\n"
        "% function evaluation | 2 objectives | 2 variables\n"
        "1\t7.87e+03\t7.97e+03\t2.3\t9.0\n3\t1.13e+03\t1.93e+03\t-3.7\t-1.5\n% evaluations = 30\n"
    )
    coco = pb.read_archives(tmp_path / "RS")
    assert coco.runs[0].name() == "random on bbob-biobj f1 d2 i2 (repetition 0)"
    assert coco.points.tolist() == [[7870.0, 7970.0], [1130.0, 1930.0]]
    assert coco.runs.until.tolist() == [30.0]
    ioh = tmp_path / "ioh"
    ioh.mkdir()
    run = {"instance": 1, "evals": 9, "best": {"evals": 2, "y": 1.0}}
    about = {
        "algorithm": {"name": "EA"}, "function_id": 1, "function_name": "pair",
        "maximization": False,
        "scenarios": [{"dimension": 2, "path": "IOH.dat", "runs": [run]}],
    }  # fmt: skip
    (ioh / "IOHprofiler_f1.json").write_text(json.dumps(about))
    (ioh / "IOH.dat").write_text("evaluations raw_y raw_y_2\n1 3.0 2.0\n2 1.0 4.0\n")
    points = pb.read_archives(ioh)
    assert points.objectives == ("raw_y", "raw_y_2")
    assert points.points.tolist() == [[3.0, 2.0], [1.0, 4.0]]
    with pytest.raises(DataError, match="read them with pb.read_archives"):
        pb.read(ioh)


def test_read_archives_of_pymoo():
    class Entry:
        def __init__(self, n_eval, points):
            self.evaluator = type("Evaluator", (), {"n_eval": n_eval})
            self.pop = {"F": np.array(points)}

    result = type(
        "Result", (), {"history": [Entry(2, [[1, 2], [2, 1]]), Entry(4, [[1, 1], [2, 2]])]}
    )
    archives = pb.read_archives({("NSGA2", "zdt1", 7): result})
    assert archives.points.tolist() == [[1, 2], [2, 1], [1, 1]]
    assert archives.runs.repetition.tolist() == [7]
    with pytest.raises(DataError, match="save_history=True"):
        pb.read_archives({("NSGA2", "zdt1"): type("Result", (), {"history": []})})
