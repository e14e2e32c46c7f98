"""A race as one file: it is the same for the same store, and what was changed in it is found."""

import json
import zipfile

import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.racing.events import Hosted, from_json
from polarbear.reporting import supplement
from polarbear.reporting.supplement import read_members, verify_supplement, write_members


def search(quality):
    def solver(job):
        for step in (1, 10, 100):
            yield step, job.rng.gumbel() - 4 * quality - step

    return solver


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The supplement of a race of three solvers, made by the command."""
    folder = tmp_path_factory.mktemp("supplement")
    solvers = {"good": search(1.0), "fair": search(0.5), "bad": search(0.0)}
    budget = pb.Budget(runs=60)
    store = folder / "race.db"
    pb.race(solvers, range(60), [1, 10, 100], direction="minimize", budget=budget, store=store,
            executor=1).close()  # fmt: skip
    assert main(["supplement", str(store), str(folder / "made.zip")]) == 0
    return folder / "made.zip"


def forged(made, tmp_path, **changes):
    """Return a supplement with other texts and a manifest that fits them."""
    members = {name: data.decode() for name, data in read_members(made).items()}
    del members["manifest.json"]
    for name, change in changes.items():
        name = name.replace("_", ".")
        members[name] = change(members[name])
    write_members(tmp_path / "forged.zip", members)
    return tmp_path / "forged.zip"


@pytest.mark.slow
def test_it_verifies_and_has_no_host(made, capsys):
    assert main(["supplement", "--verify", str(made)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("verified\n")
    assert "all the same in every digit" in said
    lines = read_members(made)["events.jsonl"].decode().splitlines()
    hosted = [event for event in map(from_json, lines) if isinstance(event, Hosted)]
    assert hosted
    assert all("host" not in event.details for event in hosted)
    assert main(["supplement", "--verify", str(made), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verified"] is True


@pytest.mark.slow
def test_the_same_store_gives_the_same_bytes(made, tmp_path):
    store = made.with_name("race.db")
    assert main(["supplement", str(store), str(tmp_path / "again.zip")]) == 0
    assert (tmp_path / "again.zip").read_bytes() == made.read_bytes()


@pytest.mark.slow
def test_a_changed_file_is_named(made, tmp_path, capsys):
    members = read_members(made)
    with zipfile.ZipFile(tmp_path / "changed.zip", "w") as file:
        for name, data in members.items():
            if name != "table.tex":
                file.writestr(name, data.replace(b"bad", b"mad", 1) if name == "runs.csv" else data)
        file.writestr("more.txt", "x")
    assert main(["supplement", "--verify", str(tmp_path / "changed.zip")]) == 1
    said = capsys.readouterr().out
    assert said.startswith("NOT verified:")
    for problem in ("table.tex: missing", "more.txt: not in manifest", "runs.csv: changed"):
        assert problem in said


@pytest.mark.slow
def test_forged_decisions_and_runs_are_found(made, tmp_path):
    def no_elimination(text):
        lines = text.splitlines()
        k = next(k for k, line in enumerate(lines) if '"dominated"' in line)
        plain = json.loads(lines[k])
        assert plain["event"] == "decided"
        plain["decision"]["verdicts"] = [
            one for one in plain["decision"]["verdicts"] if "dominated" not in one
        ]
        return "\n".join([*lines[:k], json.dumps(plain), *lines[k + 1 :], ""])

    def better_values(text):
        return "\n".join(
            line.replace('"value": [', '"value": [-1e9, ', 1).replace('"time": [', '"time": [0.5, ')
            if '"told"' in line and '"bad"' in line
            else line
            for line in text.split("\n")
        )

    for change in (no_elimination, better_values):
        check = verify_supplement(forged(made, tmp_path, events_jsonl=change))
        assert not check.is_verified
        assert any("events.jsonl: event " in problem for problem in check.problems), check
        assert any(": line" in problem for problem in check.problems)


@pytest.mark.slow
def test_forged_texts_are_found(made, tmp_path):
    def words(text):
        return text.replace("Replaceable: ", "Best: ")

    check = verify_supplement(forged(made, tmp_path, methods_txt=words))
    assert check.problems == ("methods.txt: its words are not those that follow from the race",)
    check = verify_supplement(
        forged(made, tmp_path, table_tex=lambda text: text.replace("0.", "0.1"))
    )
    assert check.is_verified
    assert check.notes == ("table.tex: numbers differ in their last digits, or versions do",)
    check = verify_supplement(
        forged(made, tmp_path, decisions_json=lambda text: text.replace("dominated", "member"))
    )
    assert "decisions.json: line" in str(check)
    check = verify_supplement(forged(made, tmp_path, events_jsonl=lambda text: text + "{}\n"))
    assert "events.jsonl: line" in str(check)


@pytest.mark.slow
def test_other_files_are_refused(made, tmp_path, capsys, monkeypatch):
    (tmp_path / "x.zip").write_text("x")
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as file:
        file.writestr("a", "b")
    for name, words in (("x.zip", "is damaged, or not a zip file"), ("y.zip", "no supplement")):
        assert main(["supplement", "--verify", str(tmp_path / name)]) == 1
        assert words in capsys.readouterr().err
    assert main(["supplement", str(made.with_name("race.db"))]) == 1
    assert "pass a store and the zip file" in capsys.readouterr().err
    monkeypatch.setattr(supplement, "VERSION", 0)
    assert "up to version 0" in str(verify_supplement(made))
