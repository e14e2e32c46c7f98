"""A race as a TOML file: what it may say, and what is refused."""

import dataclasses
import json
import re
import sys
import time
import tomllib
from pathlib import Path

import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.errors import DataError
from polarbear.racing.budget import Budget
from polarbear.racing.questions.stored import BY_NAME
from polarbear.running.solvers.configuration import (
    _COMMAND_KEYS,
    _QUESTION_KEYS,
    _TOP_KEYS,
    load,
)
from polarbear.running.solvers.setup import Limits
from waiting import GROWING, PATIENCE

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "race.schema.json"

RACE = """
times = {{ from = 1, to = 100, n = 3 }}
direction = "minimize"
clock = "reported"
seed = 7
store = "race.db"
[solvers.program]
command = [{python!r}, "-c", "print('1s: 4', __import__('sys').argv[1])", "{{instance}}"]
pattern = '(?P<time>\\S+)s: (?P<value>\\S+) .*a.txt'
[solvers."own; $(x)"]
python = "mine:solve"
[instances]
files = "*.txt"
[question]
certainty = 0.9
[budget]
batch = [2, 4]
[limits]
wall_seconds = 60
environment = ["A_KEY"]
"""


@pytest.fixture
def race(tmp_path):
    (tmp_path / "mine.py").write_text("def solve(job):\n    yield 1, 2.0\n")
    (tmp_path / "a.txt").touch()
    path = tmp_path / "race.toml"
    path.write_text(RACE.format(python=sys.executable))
    before = list(sys.path)
    yield path
    sys.path[:] = before
    sys.modules.pop("mine", None)


def test_a_file_says_what_to_run(race, capsys):
    found = load(race)
    assert list(found.setup.solvers) == ["program", "own; $(x)"]
    assert found.setup.times == pytest.approx((1, 10, 100))
    assert found.setup.instances.names == ("a.txt",)
    assert (found.question.certainty, found.budget.batch) == (0.9, (2, 4))
    assert found.setup.limits.environment == ("A_KEY",)
    assert (found.setup.limits.wall_seconds, found.seed, found.store) == (
        60,
        7,
        str(race.parent / "race.db"),
    )
    assert main(["check", str(race), "--seconds", "120"]) == 0
    said = capsys.readouterr().out
    assert "program    finished at 1 (reported time), 1 improvement" in said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("direction =", "directoin =", "unknown key 'directoin'; did you mean 'direction'?"),
        (
            "certainty = 0.9",
            'certainty = 0.9\nfit = { prior = "GP" }',
            "[question] unknown key 'fit'; it belongs at the top of the file",
        ),
        (
            'environment = ["A_KEY"]',
            'environment = "A_KEY"',
            "[limits] environment = 'A_KEY': expected a list, ['A_KEY']",
        ),
        ('direction = "minimize"', "", "direction is missing"),
        ("certainty", "certanty", "[question] unknown key 'certanty'; did you mean 'certainty'?"),
        ("seed = 7", 'deadline = "8h"', "unknown key 'deadline'; it belongs under [budget]"),
        ("wall_seconds = 60", "seed = 9", "[limits] unknown key 'seed'; it belongs at the top of"),
        ("wall_seconds = 60", "wall_secondz = 60", "[limits] unknown key 'wall_secondz'"),
        ("wall_seconds = 60", "wall_seconds = -1", "wall_seconds = -1: expected a number above 0"),
        ("pattern", "pattren", "[solvers.program] unknown key 'pattren'"),
        ("mine:solve", "mine", 'expected "module:name"'),
        ("mine:solve", "mine:slove", "mine has no 'slove'"),
        ("mine:solve", "nobody:solve", "there is no module 'nobody', neither beside the file, in "),
        ("{instance}", "{instanze}", "[solvers.program] "),
        ('"*.txt"', '"*.cnf"', "there is no such file"),
        ('"*.txt"', '"/etc/*"', "Non-relative"),
        ("n = 3", "m = 3", "[times] unknown key 'm'"),
        ("seed = 7", "seed = 'x'", "expected a whole number"),
        ("[limits]", "[[limits]]", "expected a table [limits]"),
        ("[limits]", "[", "is not TOML"),
        ('"minimize"', '"minimise"', "direction must be 'minimize' or 'maximize'"),
        ('clock = "reported"', 'clock = "watch"', "clock = 'watch': expected one of"),
        ("n = 3", 'n = "x"', "[times] "),
        ("times = {", 'times = ["a"] # {', "[times] could not convert"),
        ("batch = [2, 4]", "batch = 4", "[budget] batch = 4: expected two whole numbers"),
        ("from = 1,", "from = 200,", "before its start at 200"),
        ("files =", "flies =", "[instances] unknown key 'flies'; did you mean 'files'?"),
        ('store = "race.db"', "seed = 8", "is not TOML: Cannot overwrite a value"),
        ("certainty = 0.9", "certainty = 3", "certainty = 3: expected a probability"),
        ("certainty = 0.9", 'baseline = "program"', "ParetoSet has no 'baseline'; NoWorse has it"),
        *(
            (
                "certainty = 0.9",
                f'kind = "Choice"\npreference = {preference}',
                f"[question] preference = {said}",
            )
            for preference, said in [
                ('"between 2 and 10"', '"between 2 and 10": expected { at = 60 }, '),
                ("[2, 10]", "[2, 10]: expected { at = 60 }, { final = true } or "),
                ("{ around = 60 }", "{ around = 60 }: expected { at = 60 }, { final = true } or "),
                ("{ between = [10, 2] }", "{ between = [10, 2] }: between(10, 2): the range is"),
            ]
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(race, old, new, message):
    text = race.read_text()
    assert old in text
    race.write_text(text.replace(old, new))
    with pytest.raises(DataError) as caught:
        load(race)
    said = str(caught.value)
    assert said.startswith(f"{race}")
    assert message in said


def test_a_question_that_is_not_there_or_not_complete_is_said_with_its_table(race):
    text = race.read_text()
    for kind, said in (
        ("Best", "no question 'Best': expected one of ParetoSet, StrictParetoSet, Choice, NoWorse"),
        ("NoWorse", "NoWorse needs the key baseline"),
    ):
        race.write_text(text.replace("certainty = 0.9", f'kind = "{kind}"'))
        with pytest.raises(DataError, match=re.escape(f"{race}: [question] {said}")):
            load(race)


@pytest.mark.parametrize(
    "content",
    [
        "a = 1\n" * 200_000,
        "a." * 300_000 + "b = 1",
        "a." * 50_000 + "b = 1",
        "a = " + "[" * 100_000,
    ],
)
def test_absurd_files_are_refused_at_once(tmp_path, content):
    path = tmp_path / "race.toml"
    path.write_text(content)
    start = time.process_time()
    with pytest.raises(DataError):
        load(path)
    assert time.process_time() - start < 5
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path / "none.toml")


def test_the_schema_has_what_the_program_has():
    schema = json.loads(SCHEMA.read_text())["properties"]
    assert set(schema) == set(_TOP_KEYS)
    told = schema["question"]["properties"]
    assert list(told) == list(_QUESTION_KEYS)
    # Questions of tests may be there too.
    kinds = {name: one for name, one in BY_NAME.items() if one.__module__.startswith("polarbear.")}
    assert told["kind"]["enum"] == list(kinds)
    for name, kind in kinds.items():
        for field in (one for one in dataclasses.fields(kind) if one.name != "fit"):  # [fit]
            default = None if field.default in (dataclasses.MISSING, None) else field.default
            # Questions may differ: the description names the default of the others.
            words = f"{default} for {name}"
            same = told[field.name].get("default") == default
            assert same or words in told[field.name]["description"], words
    for name, kind in (("budget", Budget), ("limits", Limits)):
        told = schema[name]["properties"]
        assert list(told) == [field.name for field in dataclasses.fields(kind)]
        for field in dataclasses.fields(kind):
            default = list(field.default) if field.name == "batch" else field.default
            assert told[field.name].get("default") == default, field.name
    assert set(schema["solvers"]["additionalProperties"]["oneOf"][1]["properties"]) == {
        *_COMMAND_KEYS
    }


def test_the_schema_accepts_what_the_program_accepts(race):
    validator = pytest.importorskip("jsonschema").Draft202012Validator(
        json.loads(SCHEMA.read_text())
    )
    text = race.read_text()
    assert validator.is_valid(tomllib.loads(text))
    for old, new in (
        ("direction =", "directoin ="),
        ("certainty = 0.9", "certainty = 3"),
        ("batch = [2, 4]", "batch = [2]"),
        ("wall_seconds = 60", "wall_secondz = 60"),
        ("pattern", "pattren"),
        ("mine:solve", "mine"),
        ('files = "*.txt"', 'files = "*.txt"\nnames = ["a"]'),
    ):
        assert old in text
        assert not validator.is_valid(tomllib.loads(text.replace(old, new))), new


def test_a_deadline_is_a_duration_from_now_or_a_time(tmp_path):
    path = tmp_path / "race.toml"

    def deadline(text):
        path.write_text(
            f'times = [1]\ndirection = "minimize"\n[budget]\ndeadline = {text}\n'
            '[instances]\nnames = ["a"]\n[solvers.a]\ncommand = "a"\npattern = "(?P<value>1)"\n'
        )
        return load(path).budget.deadline

    assert deadline('"8h"') == pytest.approx(time.time() + 28_800, abs=600)
    assert deadline("18:30:00") > time.time()
    assert deadline("2030-01-31T18:30:00Z") == 1_896_114_600
    with pytest.raises(DataError, match=r': \[budget\] deadline = 28800 .* write "28800s"'):
        deadline("28800")


@pytest.mark.parametrize(
    ("preference", "says"),
    [
        ("{ at = 10 }", "at 10"),
        ("{ final = true }", "at the last time"),
        ("{ between = [2, 10] }", "from 2 to 10"),
        ('{ between = [2, 10], scale = "log" }', "from 2 to 10"),
    ],
)
def test_a_preference_in_a_file(race, preference, says):
    race.write_text(
        race.read_text().replace("certainty = 0.9", f'kind = "Choice"\npreference = {preference}')
    )
    assert load(race).question.preference.says.startswith(says)


def test_a_pattern_without_files_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for files in ("*.cnf", ["a.cnf"]):
        with pytest.raises(DataError, match=f"in {tmp_path}$"):
            pb.Instances.from_files(files)


def test_check_watches_as_long_as_it_may():
    def slow(job):
        while True:
            yield job.now(), 1.0
            time.sleep(0.05)

    for seconds in GROWING:
        found = pb.check(
            [slow], ["a"], [PATIENCE], direction="minimize", clock="wall", seconds=seconds
        )
        assert found.outcomes["slow"].run.until == pytest.approx(seconds)
        if not found.problems:
            break
    assert not found.problems
