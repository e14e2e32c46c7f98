"""What is written is read again, by this package and by the tools themselves."""

import string

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from polarbear import DataError, Run, Runs, Status, read, write

TEXTS = st.text(string.ascii_letters + "é _-./'\"|{}", min_size=1, max_size=8)
NAMES = TEXTS.filter(lambda name: name == name.strip())
STATUSES = st.sampled_from(Status)


@st.composite
def runs_over_evaluations(draw, instances=NAMES, algorithms=NAMES, statuses=STATUSES):
    """Draw runs whose times count evaluations."""
    direction = draw(st.sampled_from(["minimize", "maximize"]))
    names = draw(
        st.lists(
            st.tuples(algorithms, instances, st.integers(0, 99)),
            min_size=1,
            max_size=5,
            unique=True,
        )
    )
    records = []
    for algorithm, instance, repetition in names:
        times = draw(st.lists(st.integers(1, 50), max_size=4, unique=True))
        values = st.floats(-1e300, 1e300, allow_nan=False)
        value = draw(st.lists(values, min_size=len(times), max_size=len(times)))
        until = draw(st.integers(max(times, default=0), 60))
        status = draw(statuses)
        records.append(Run(algorithm, instance, times, value, until, repetition, status))
    return Runs.from_records(records, direction=direction, clock="evaluations")


@settings(max_examples=40)
@given(runs=runs_over_evaluations())
def test_ioh_holds_everything(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ioh")
    write(runs, folder, format="ioh")
    assert read(folder) == runs


@settings(max_examples=40)
@given(runs=runs_over_evaluations())
def test_csv_holds_all_but_direction_and_clock(runs, tmp_path_factory):
    file = tmp_path_factory.mktemp("csv") / "runs.csv"
    if any(not len(run.time) for run in runs):
        return  # a table needs a row for a run, which to_frame leaves out
    write(runs, file)
    assert read(file, direction=runs.direction, clock=runs.clock, until="until") == runs


PROBLEMS = st.builds("bbob f{} d{} i{}".format, *[st.integers(1, 3)] * 3)


@settings(max_examples=40)
@given(runs=runs_over_evaluations(PROBLEMS, st.sampled_from(["A", "B b"]), st.just(Status.CUT)))
def test_coco_holds_trajectories(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("coco")
    if runs.direction == "maximize":
        with pytest.raises(DataError, match="COCO always minimises"):
            write(runs, folder, format="coco")
        return
    write(runs, folder, format="coco")
    seen, records = {}, []
    for run in runs:  # repetitions are counted
        number = seen.setdefault((run.algorithm, run.instance), [])
        unstated = run._replace(status=Status.UNSTATED)  # COCO has no statuses
        records.append(unstated._replace(repetition=len(number)))
        number.append(run)
    assert read(folder) == Runs.from_records(records, direction="minimize", clock="evaluations")


def test_other_names_are_numbered(tmp_path):
    records = [Run(a, i, [1], [2.0], 5) for a in ("it's", "b") for i in ("tsp", "f7 d2 i1")]
    runs = Runs.from_records(records, direction="minimize", clock="evaluations")
    write(runs, tmp_path / "coco", format="coco")
    again = read(tmp_path / "coco")
    assert again.algorithms == ("b", "it`s")
    assert again.instances == ("f7 d2 i1", "f8 d1 i1")
    assert '"f8 d1 i1": "tsp"' in (tmp_path / "coco" / "instances.json").read_text()


def test_what_cannot_be_written_is_said(tmp_path):
    def runs_with(time, until=9.0):
        return Runs.from_records([Run("a", "x", [time], [1.0], until)], direction="minimize")

    for runs, why in ((runs_with(0.5), "time 0.5"), (runs_with(1, 9.5), "until 9.5")):
        with pytest.raises(DataError, match=f"{why}: IOHprofiler counts evaluations"):
            write(runs, tmp_path / "x", format="ioh")
    with pytest.raises(DataError, match="time 0: COCO counts evaluations"):
        write(runs_with(0), tmp_path / "x", format="coco")
    write(runs_with(1), tmp_path / "new" / "x", format="ioh")
    with pytest.raises(DataError, match="exists and is not an empty folder"):
        write(runs_with(1), tmp_path / "new", format="coco")
    with pytest.raises(DataError, match=r"ends in .csv, .parquet or .pq, or the format ioh"):
        write(runs_with(1), tmp_path / "x.dat")
    with pytest.raises(DataError, match="expected one of csv, parquet, ioh, coco"):
        write(runs_with(1), tmp_path / "x", format="hdf")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="cannot be written: No such file"):
        write(runs_with(1), tmp_path / "nowhere" / "x.csv")


@pytest.mark.long
@pytest.mark.parametrize(("format_", "first"), [("ioh", 1), ("ioh", 4), ("coco", 1)])
def test_iohinspector_reads_what_is_written(format_, first, tmp_path):
    inspector = pytest.importorskip("iohinspector")
    rng = np.random.default_rng(1)
    records = []
    for number in range(40):
        times = np.unique([first, *rng.integers(5, 1000, 30)])
        name = f"bbob f{number % 4 + 1} d{number % 2 + 2} i{number // 20 + 1}"
        values = np.sort(rng.random(len(times)))[::-1]
        records.append(Run("AB"[number // 4 % 2], name, times, values, 1000, number))
    runs = Runs.from_records(records, direction="minimize", clock="evaluations")
    write(runs, tmp_path / "out", format=format_)
    manager = inspector.DataManager()
    manager.add_folder(str(tmp_path / "out"))
    assert manager.n_runs == len(runs)
    table = manager.load(monotonic=True, include_meta_data=True).filter(
        inspector.manager.pl.col("raw_y").is_finite()
    )
    assert sorted(table["raw_y"]) == pytest.approx(sorted(runs.value.tolist()))
    assert sorted(table["evaluations"]) == sorted(runs.time.tolist())
