"""Benchmark suites: ASlib and BenchExec, where a run is one step; logs of several objectives."""

import bz2
import gzip
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from polarbear import DataError, Status, rank, read
from polarbear.errors import DataWarning

FILES = Path(__file__).parent / "files"
CPMP, OBJ = FILES / "aslib" / "CPMP-2015", FILES / "aslib" / "CSP-Minizinc-Obj-2016"
RUNS_OF = {
    CPMP: (CPMP / "algorithm_runs.arff").read_text(),
    OBJ: gzip.decompress((OBJ / "algorithm_runs.arff.gz").read_bytes()).decode(),
}


def rows_of(folder):
    """Return the rows of a file in ARFF, split by hand."""
    lines = RUNS_OF[folder].split("@DATA\n")[1].strip().splitlines()
    return [line.replace('"', "").split(",") for line in lines]


@pytest.fixture
def scenario(tmp_path):
    """Return a function that writes a scenario with other rows or another description."""

    def write(rows, **entries):
        text = (CPMP / "description.txt").read_text()
        for key, entry in entries.items():
            text = re.sub(rf"(?m)^{key}:.*\n(- .*\n)*", f"{key}: {entry}\n", text)
        (tmp_path / "description.txt").write_text(text)
        header = RUNS_OF[CPMP].split("@DATA")[0]
        (tmp_path / "algorithm_runs.arff").write_text(f"{header}@data\n{rows}\n")
        return tmp_path

    return write


class TestAslib:
    def test_a_runtime_is_one_step(self):
        runs = read(CPMP)
        assert (runs.direction, runs.clock, len(runs)) == ("minimize", "seconds", 40)
        expected = {
            (algorithm, instance): (float(seconds), status)
            for instance, _, algorithm, seconds, status in rows_of(CPMP)
        }
        endings = {"ok": Status.FINISHED, "timeout": Status.CUT, "memout": Status.OUT_OF_MEMORY}
        for run in runs:
            seconds, status = expected[run.algorithm, run.instance]
            assert run.repetition == 1
            assert run.until == seconds
            assert run.status is endings[status]
            assert list(run.time) == ([seconds] if status == "ok" else [])
            assert list(run.value) == ([0.0] if status == "ok" else [])
        assert rank(runs).algorithms == runs.algorithms

    def test_a_quality_counts_from_its_runtime(self):
        runs = read(OBJ)
        row_of = {(row[2], row[0]): row for row in rows_of(OBJ)}
        assert len(runs) == len(row_of) == 44
        assert {run.status for run in runs} == {Status.FINISHED, Status.CUT}
        for run in runs:
            _, _, _, quality, seconds, status = row_of[run.algorithm, run.instance]
            assert list(run.value) == ([float(quality)] if status == "ok" else [])
            assert run.until == float(seconds)
        by_time = read(OBJ, value="time")
        assert set(np.concatenate([run.value for run in by_time])) == {0.0}
        with pytest.raises(DataError, match=r"no measure 'cost'; there are obj, time"):
            read(OBJ, value="cost", format="aslib")

    def test_several_scenarios_and_their_other_files(self, tmp_path):
        shutil.copytree(FILES / "aslib", tmp_path / "data")
        folds = tmp_path / "data" / "CPMP-2015" / "cv.arff"
        folds.write_text("@RELATION x\n@ATTRIBUTE instance_id STRING\n@DATA\nx\n")
        runs = read(tmp_path)
        assert len(runs) == 84
        assert runs.instances[0].startswith("CPMP-2015: BF")
        assert read(CPMP / "algorithm_runs.arff") == read(CPMP)

    def test_features_come_along(self, tmp_path):
        shutil.copytree(FILES / "aslib", tmp_path / "data")
        first, second = read(CPMP).instances[:2]
        (tmp_path / "data" / "CPMP-2015" / "feature_values.arff").write_text(
            "@RELATION x\n@ATTRIBUTE instance_ID STRING\n@ATTRIBUTE repetition NUMERIC\n"
            "@ATTRIBUTE nVars NUMERIC\n@ATTRIBUTE kind {a,b}\n@DATA\n"
            f"{first},1,3,a\n{first},2,5,a\n{second},1,?,?\nunknown,1,7,b\n"
        )
        with pytest.warns(DataWarning, match="have no row"):
            data = read(tmp_path / "data" / "CPMP-2015").instance_data
        np.testing.assert_array_equal(data["nVars"][:3], [4, np.nan, np.nan])
        assert data["kind"][:3].tolist() == ["a", "", ""]
        with pytest.warns(DataWarning, match="have no row"):
            runs = read(tmp_path)  # with a scenario that has no features
        assert runs.instance_data["nVars"][runs.instances.index(f"CPMP-2015: {first}")] == 4

    def test_quoted_cells_and_lists_in_one_line(self, scenario):
        folder = scenario(
            "% a comment\n'it\\'s, 1',2,\"a 'b'\",?,crash\n x , 3.0 , c , 3601 , ok\n",
            performance_measures="[runtime]",
            algorithm_cutoff_time="'?'",
        )
        first, second = sorted(read(folder), key=lambda run: run.repetition)
        assert (first.algorithm, first.instance) == ("a 'b'", "it\\'s, 1")
        assert (first.status, list(first.time)) == (Status.CRASHED, [])
        assert (second.repetition, list(second.time)) == (3, [3601.0])

    def test_solved_after_the_cutoff_is_not_solved(self, scenario):
        (run,) = read(scenario("x,1,a,3601,ok"))
        assert (list(run.time), run.until, run.status) == ([], 3600.0, Status.CUT)

    @pytest.mark.parametrize(
        ("rows", "entries", "why"),
        [
            ("x,1,a,3", {}, "arff, line 10: has 4 cells, expected 5"),
            ("x,1,a,3,'ok", {}, "arff, line 10: has 0 cells"),
            ("x,1,a,3,maybe", {}, "line 10: runstatus 'maybe' is not one of ok, timeout"),
            ("x,one,a,3,ok", {}, "line 10: repetition 'one' is not a whole number"),
            ("x,1,a,fast,ok", {}, "line 10: 'fast' is not a number"),
            ("x,1,a,3,ok", {"algorithm_cutoff_time": "soon"}, "description.txt: .*'soon'"),
            ("x,1,a,3,ok", {"performance_measures": "[a, b]"}, "have 2, 1 and 1 entries"),
        ],
    )
    def test_damage_is_named_with_its_place(self, scenario, rows, entries, why):
        with pytest.raises(DataError, match=why):
            read(scenario(rows, **entries))

    def test_a_file_alone_lacks_its_description(self, tmp_path):
        shutil.copy(CPMP / "algorithm_runs.arff", tmp_path)
        with pytest.raises(DataError, match=r"has no description.txt beside it: read the whole"):
            read(tmp_path)


XML = """<result tool="t" version="{version}" timelimit="10s" name="{name}" block="b">
<run name="../a.yml" properties="p"><column title="status" value="{status}"/>
<column title="cputime" value="{seconds}s"/><column title="walltime" value="11s"/>
<column title="best" value="7 B"/>{more}</run></result>"""


@pytest.fixture
def result(tmp_path):
    """Return a function that writes a result of BenchExec with one run."""

    def write(file="x.results.b.xml", *, content=None, **fields):
        defaults = {"version": "1", "name": "b", "status": "true", "seconds": "3", "more": ""}
        (tmp_path / file).write_text(content or XML.format(**{**defaults, **fields}))
        return tmp_path

    return write


class TestBenchExec:
    def test_a_result_is_one_step(self):
        runs = read(FILES / "benchexec")
        assert runs.algorithms == ("clasp default", "clasp jumpy")
        assert runs.instances == ("models/tasks/c1.opb", "models/tasks/c2.opb")
        assert (runs.direction, runs.clock) == ("minimize", "cpu")
        solved, late = runs.filter(algorithms=["clasp jumpy"])
        assert (list(solved.time), list(solved.value)) == ([0.011728777], [0.0])
        assert solved.status is Status.FINISHED
        assert (list(late.time), late.until, late.status) == ([], 2.0, Status.CUT)

    def test_the_value_is_a_column(self):
        runs = read(FILES / "benchexec", value="best", time="walltime", direction="minimize")
        assert [run.value[0] for run in runs] == [138, 138, 1644, 1888]
        assert runs.clock == "wall"
        with pytest.raises(DataError, match="small or large values are good"):
            read(FILES / "benchexec", value="best", format="benchexec")
        with pytest.raises(DataError, match="time='cpu': expected 'cputime' or 'walltime'"):
            read(FILES / "benchexec", time="cpu")

    @pytest.mark.parametrize(
        ("status", "more", "expected", "solved"),
        [
            ("false(unreach-call)", "", Status.FINISHED, True),
            ("unknown", "", Status.FINISHED, False),
            ("true", '<column title="category" value="wrong"/>', Status.FINISHED, False),
            ("true", '<column title="category" value="correct"/>', Status.FINISHED, True),
            ("OUT OF MEMORY", "", Status.OUT_OF_MEMORY, False),
            ("ERROR (7)", "", Status.CRASHED, False),
            ("KILLED BY SIGNAL 9", "", Status.CRASHED, False),
        ],
    )
    def test_statuses(self, result, status, more, expected, solved):
        (run,) = read(result(status=status, more=more))
        assert (run.status, len(run.time) > 0, run.instance) == (expected, solved, "a.yml (p)")

    def test_versions_repetitions_and_names(self, result):
        for file, version, name in (("1", "1", "x.b"), ("2", "2", "x.b"), ("3", "2", "x.b")):
            folder = result(f"{file}.results.xml", version=version, name=name)
        runs = read(folder)
        assert runs.algorithms == ("t x 1", "t x 2")
        assert sorted(run.repetition for run in runs) == [0, 0, 1]
        assert read(folder, names="{algorithm}.results.xml").algorithms == ("1", "2", "3")

    def test_entities_are_refused_and_other_xml_is_left_out(self, result):
        bomb = '<!DOCTYPE result [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + XML
        with pytest.raises(DataError, match=r"xml: line 1: declares an entity"):
            read(result(content=bomb))
        folder = result(content="<project><result tool='x'/></project>")
        with pytest.raises(DataError, match="benchexec"):
            read(folder)
        result("y.xml")
        assert len(read(folder)) == 1
        (folder / "y.xml").write_text(XML.replace("</run>", ""))
        with pytest.raises(DataError, match=r"y.xml: line 4: not valid XML: mismatched tag"):
            read(folder)

    def test_a_file_that_was_cut_is_not_left_out(self, result):
        """Else an algorithm is missing, and nobody notices."""
        folder = result()
        (folder / "y.results.b.xml").write_bytes(b'<?xml version="1.0"?>')
        with pytest.raises(DataError, match=r"y.results.b.xml: line 1: not valid XML"):
            read(folder)

    def test_packed_content_has_a_limit(self, tmp_path, monkeypatch):
        (tmp_path / "a.results.xml.bz2").write_bytes(bz2.compress(b" " * 5_000))
        monkeypatch.setattr("polarbear.readers.source.MAX_UNPACKED_BYTES", 1_000)
        with pytest.raises(DataError, match="unpacks to more than"):
            read(tmp_path)


def test_logs_of_several_objectives_say_so(tmp_path):
    shutil.copytree(FILES / "ioh" / "ioh_0.3.1_info", tmp_path / "ioh")
    for data in (tmp_path / "ioh").rglob("*.dat"):
        data.write_text('"function evaluation" "raw_y" "F2"\n1 2 3\n')
    with pytest.raises(DataError, match=r"line 1: several objectives \(raw_y, F2\)"):
        read(tmp_path)


def test_names_apply_to_suites_as_well():
    runs = read(FILES / "ioh" / "ioh_0.3.1_info", names="ioh_{algorithm}_info/*.info")
    assert runs.algorithms == ("0.3.1",)
    constrained = read(FILES / "coco" / "bbob-constrained", names="{algorithm}/*.info")
    assert constrained.algorithms == ("bbob-constrained",)
