"""The dry run: what is recognised in a folder, what is guessed, and what is left out."""

import shutil
from pathlib import Path

import pytest

from polarbear.errors import DataError
from polarbear.readers import explain, read

FILES = Path(__file__).parent / "files"


@pytest.fixture
def mixed(tmp_path):
    """A folder with three solvers' logs, two AutoML tools, suites, a damaged file and notes."""
    for name in ("highs", "scip", "olines", "ioh", "coco", "nevergrad", "smac", "carps"):
        shutil.copytree(FILES / name, tmp_path / name)
    (tmp_path / "README.md").write_text("notes")
    (tmp_path / "scip" / "strange.log").write_text("nothing of a solver\n")
    (tmp_path / "broken.csv").write_text("algorithm,instance,time,value\na,x,1\n")
    return tmp_path


def test_a_mixed_folder_is_explained_without_an_error(mixed):
    explanation = explain(mixed)
    formats = {part.format for part in explanation.recognised}
    assert {"ioh", "coco", "nevergrad", "logs", "smac", "carps"} <= formats
    kinds = {kind for part in explanation.recognised for kind in part.kinds}
    assert {"HiGHS", "SCIP", "o-lines"} <= kinds
    read_files = [file for part in explanation.recognised for file in part.files]
    assert len(set(read_files)) == len(read_files)
    names = {file.relative_to(mixed).as_posix() for file in mixed.rglob("*") if file.is_file()}
    everything = {name for name in names if "/." not in name}  # hidden files are not listed
    assert {*read_files, *explanation.left_out} == everything
    assert set(read_files).isdisjoint(explanation.left_out)
    assert explanation.left_out["README.md"] == "no format reads such a file"
    assert "is not a log of" in explanation.left_out["scip/strange.log"]
    assert explanation.left_out["broken.csv"].startswith("line 2: 3 cells")
    text = str(explanation)
    assert f"of {len(everything)} files recognised" in text
    assert "README.md" in text


def test_one_format_is_explained_as_it_is_read():
    explanation = explain(FILES / "nevergrad" / "tiny.csv")
    (part,) = explanation.recognised
    assert part.runs == read(FILES / "nevergrad" / "tiny.csv")
    assert not explanation.left_out
    plain = explanation.to_plain()["recognised"][0]
    assert plain["runs"] == len(part.runs)
    assert plain["clock"] == "evaluations"


def test_files_that_do_not_fit_names_are_left_out_with_the_reason(tmp_path):
    (tmp_path / "a_1.log").write_text("0.1 o 3\n")
    (tmp_path / "other.log").write_text("0.1 o 3\n")
    explanation = explain(tmp_path, names="{algorithm}_{instance}.log")
    assert explanation.left_out == {"other.log": "does not fit names='{algorithm}_{instance}.log'"}
    assert "1 of 2 files do not fit" in explanation.recognised[0].warnings[0]
    assert not explanation.recognised[0].guesses


def test_incomplete_tables_say_what_they_lack(tmp_path):
    (tmp_path / "a.csv").write_text("algorithm,instance,time,value\na,x,1,2\n")
    assert "direction" in explain(tmp_path).left_out["a.csv"]
    assert len(explain(tmp_path, direction="minimize").recognised[0].runs) == 1


def test_bad_arguments_are_errors(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        explain(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no option 'nmaes'"):
        explain(FILES, nmaes="x")


def test_time_grows_linearly_with_files(tmp_path):
    for number in range(300):
        (tmp_path / f"a__{number}b.log").write_text("0.1 o 3\n" if number else "what is this\n")
    explanation = explain(tmp_path)
    assert len(explanation.recognised[0].runs) == 299
    assert len(explanation.left_out) == 1
