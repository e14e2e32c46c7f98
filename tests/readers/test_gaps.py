"""A table that lacks several things is told all of them at once, with what makes up for them."""

import shlex
from pathlib import Path

import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.errors import DataError

HEADERS = {"CMA": "evals,best", "DE": "nfe,best_cost", "RS": "evals,best"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One file per run, named by its path; columns differ by file, and a cell is empty."""
    monkeypatch.chdir(tmp_path)
    for algorithm, header in HEADERS.items():
        for instance in ("f1", "f2", "f3"):
            for seed in (1, 2):
                file = Path("runs", algorithm, f"{instance}_s{seed}.csv")
                file.parent.mkdir(parents=True, exist_ok=True)
                middle = "" if (algorithm, seed) == ("RS", 2) else "2"
                file.write_text(f"{header}\n1,3\n10,{middle}\n100,1\n")
    return Path("runs")


def test_a_folder_is_read_by_the_call_that_its_error_gives(folder: Path):
    with pytest.raises(DataError) as raised:
        pb.read(folder)
    message = str(raised.value)
    assert "direction='minimize' or direction='maximize'" in message
    assert "3 rows without a time or a value" in message
    call = message.splitlines()[-1].strip()
    runs = eval(call, {"pb": pb})
    assert len(runs) == 18


def test_a_command_is_given_again_with_all_that_it_lacks(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    typed = ["analyse", str(folder), "--prior", "Dirichlet"]
    assert main(typed) == 1
    command = shlex.split(capsys.readouterr().err.splitlines()[-1])
    assert command[: len(typed) + 1] == ["polarbear", *typed]
    assert main(command[1:]) == 0


def test_what_was_given_is_in_the_call_and_once_in_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    names = "{algorithm}/{instance}_s{repetition}.csv"
    given = ["--names", names, "--columns", "time=evals,nfe", "--columns", "value=best,best_cost"]
    assert main(["analyse", str(folder), *given]) == 1
    command = shlex.split(capsys.readouterr().err.splitlines()[-1])
    assert command[-4:] == ["--direction", "minimize", "--missing", "drop"]
    assert command.count("--names") == 1
    assert main(command[1:]) == 0


def test_a_frame_is_told_all_it_lacks():
    pd = pytest.importorskip("pandas")
    table = {"solver": ["a", "b"] * 4, "problem": list("xxyyzzww"), "fe": [1] * 8}
    frame = pd.DataFrame({**table, "cost": [1.0, 2, 3, None, 5, 6, 7, 8]})
    with pytest.raises(DataError) as raised:
        pb.read(frame)
    call = str(raised.value).splitlines()[-1].strip()
    assert call.startswith("pb.read(frame, algorithm='solver'")
    assert "direction='minimize', missing='drop'" in call
    assert eval(call, {"pb": pb, "frame": frame}).algorithms == ("a", "b")


def test_a_parquet_file_is_told_all_it_lacks(tmp_path: Path):
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    table = {"solver": ["a", "b"], "problem": ["x", "x"], "fe": [1, 1], "cost": [1.0, 2.0]}
    path = tmp_path / "runs.parquet"
    pd.DataFrame(table).to_parquet(path)
    with pytest.raises(DataError, match=r"no columns 'algorithm'.*direction='minimize'") as raised:
        pb.read(path)
    assert len(eval(str(raised.value).splitlines()[-1].strip(), {"pb": pb})) == 2


def test_one_gap_needs_no_call_of_its_own(tmp_path: Path):
    file = tmp_path / "t.csv"
    file.write_text("algorithm,instance,time,value\na,x,1,2\n")
    with pytest.raises(DataError, match="nothing says whether small") as raised:
        pb.read(file)
    assert "at once" not in str(raised.value)
