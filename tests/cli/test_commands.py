"""Commands as users type them: text, JSON, error messages and exit codes."""

import argparse
import hashlib
import json
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import browsers
import polarbear as pb
from polarbear.cli.inputs import get_model
from polarbear.cli.main import main, make_parser
from polarbear.priors.by_name import make_prior, parse_prior
from racers import TIMES, drive, race_of

MABBOB = Path(pb.__file__).parent / "examples" / "mabbob_d5.csv"
VARIANTS = ["--example", "cma-variants"]
READ = ("--direction", "minimize", "--clock", "evaluations")


def commands():
    (found,) = (a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return {name: one for name, one in found.choices.items() if one.get_default("command") == name}


def answer(capsys, *words):
    """Return the JSON answer of a command."""
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refusal(capsys, *words, code=1):
    """Return the error message of a command."""
    assert main([*map(str, words)]) == code
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("polarbear: ")
    return said.err


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with the example as a posterior and as ratings, and a race in a store."""
    folder = tmp_path_factory.mktemp("kept")
    assert main(["analyse", *VARIANTS, "--save", str(folder / "posterior.pb")]) == 0
    posterior = pb.Posterior.load(folder / "posterior.pb")
    pb.selection.Ratings.of(posterior).save(folder / "ratings.json")
    asked = {"question": pb.ParetoSet(certainty=0.9), "budget": pb.Budget(runs=60)}
    with pb.open_store(folder / "race.db") as store:
        store.append(drive(race_of(fit=pb.fit, **asked)).events)
    (folder / "race.toml").touch()
    return folder


# All commands


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help_and_an_example(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert f"  polarbear {name}" in said.partition("example")[2]
    for action in commands()[name]._actions:
        assert action.help, action.dest


def test_an_option_means_the_same_in_every_command():
    meaning = {}
    for name, one in commands().items():
        for action in one._actions:
            for option in action.option_strings:
                if name == "forget" and option in ("--algorithm", "--instance", "--status"):
                    continue  # which runs, where it is which column elsewhere
                if option not in (
                    "--json",
                    "--workers",
                    "--certainty",
                ):  # these say more, or have no default
                    told = (action.help, action.default, action.nargs, type(action))
                    assert meaning.setdefault(option, told) == told, (name, option)


MOVING = """
import sys
from polarbear.cli import activity, main
activity.DELAY_SECONDS, activity.INTERVAL_SECONDS = 0.0, 0.005
sys.exit(main.main(sys.argv[1:]))
"""


@pytest.fixture
def many(tmp_path):
    """The results of twenty algorithms, of which a1 is the best."""
    rng = np.random.default_rng(0)
    path = tmp_path / "many.csv"
    with path.open("w") as file:
        file.write("algorithm,instance,time,value\n")
        for (k, i), t in product(product(range(1, 21), range(20)), (10, 100, 1000)):
            file.write(f"a{k},i{i},{t},{k * (1 + 0.05 * rng.normal()) - np.log(t):.5g}\n")
    return path


def test_a_line_moves_while_a_command_works_and_not_in_pipes(many):
    terminals = pytest.importorskip("terminals")
    pytest.importorskip("pyte")
    words = ["analyse", str(many), "--direction", "minimize", "--ended", "finished"]
    command = [sys.executable, "-c", MOVING, *words]
    with terminals.Terminal(command, rows=60, columns=140) as terminal:
        assert terminal.wait() == 0
        for what in (f"reading {many}"[:100], "rating 20 algorithms on 20 instances"):
            assert what.encode() in terminal.raw
        shown = terminal.text()
        assert "rating 20" not in shown  # the answer alone stays
        assert "Run a1: the best choice with " in shown
    piped = subprocess.run(command, capture_output=True, text=True)
    assert piped.returncode == 0
    assert "reading" not in piped.stdout + piped.stderr
    assert "\x1b" not in piped.stdout + piped.stderr


def test_many_algorithms_are_a_table(many, capsys):
    assert main(["analyse", str(many), "--direction", "minimize", "--ended", "finished"]) == 0
    said = capsys.readouterr().out
    assert " is dominated by " not in said
    assert re.search(r"^a20 +drop +< 1 %", said, re.MULTILINE)
    assert re.search(r"^a1 +worth running +\S", said, re.MULTILINE)
    assert said.splitlines()[-1].startswith("Run a1: ")


def test_a_table_of_solved_tasks_is_read_by_named_columns(tmp_path, capsys):
    """The instance was passed as a tuple of one name, which only long tables took."""
    board = tmp_path / "board.csv"
    board.write_text("model,task,solved,cost\nA,x,1,0.1\nB,x,0,0.2\n")
    named = ["--algorithm", "model", "--instance", "task", "--value", "solved", "--time", "cost"]
    assert main(["read", str(board), *named, "--clock", "dollars"]) == 0
    assert "2 algorithms on 1 instance, maximize" in capsys.readouterr().out


def test_the_parser_loads_no_numpy():
    code = "import sys, polarbear.cli.main as m; m.make_parser('status'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert "polarbear.cli.stores" in loaded
    assert not {"numpy", "scipy", "json", "rich", "starlette"} & set(loaded.split())


def test_wrong_arguments_end_with_2(capsys):
    for words in (["fly"], ["analyse", "--fast"], ["select", "x", "--at", "soon"], ["merge"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 2
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["analize"], "there is no command 'analize'; did you mean analyse?"),
        (["analyse", "--exmple"], "unrecognized arguments: --exmple; did you mean --example?"),
        (["select", "x", "--btween=1"], "did you mean --between?"),
        (["fly"], "there is no command 'fly'; --help lists them"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_nearest(capsys, words, said):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert said in capsys.readouterr().err


# analyse


def test_the_example_is_analysed(capsys):
    assert main(["analyse", "--example"]) == 0
    said = capsys.readouterr().out
    assert "720 runs: 6 algorithms on 120 instances" in said
    assert "random search is replaceable by CMA-ES (> 99 %)" in said
    assert "Run CMA-ES: the best choice with 7" in said


@pytest.mark.slow
def test_from_an_installed_package_to_an_opened_report_takes_seconds(tmp_path):
    """In a process of its own, from the data that come with the package."""
    page = tmp_path / "report.html"
    command = [sys.executable, "-m", "polarbear", "analyse", "--example", "--report", page]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime < 10
    if browsers.why_not():
        pytest.skip(browsers.why_not())
    with browsers.opened() as browser, browsers.Visit(browser, page.as_uri()) as visit:
        assert "random search is replaceable by CMA-ES" in visit.page.inner_text("body")
        assert visit.errors == []


def test_analyse_says_where_the_times_begin_and_how_to_begin_earlier(tmp_path, capsys):
    rows = [
        f"{a},{i},{t},{-s * t}"
        for s, a in enumerate("ab", 1)
        for i in range(9)
        for t in range(1, 301)
    ]
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(["algorithm,instance,time,value", *rows]))
    assert main(["analyse", str(path), *READ]) == 0
    assert capsys.readouterr().out.count("The times begin at 10 evaluations") == 1
    assert main(["analyse", str(path), *READ, "--from", "1"]) == 0
    said = capsys.readouterr().out
    assert "from 1 to 300 evaluations" in said
    assert "The times begin" not in said


def test_a_colour_of_the_report_can_be_set(tmp_path, capsys):
    page = tmp_path / "report.html"
    words = ["analyse", *VARIANTS, "--times", "3", "--report", str(page)]
    assert main([*words, "--colour", "CSA=#123456"]) == 0
    assert "#123456" in page.read_text("utf-8")
    assert main(words) == 0
    assert "#123456" not in page.read_text("utf-8")
    capsys.readouterr()
    said = refusal(capsys, *words, "--colour", "CSA=blue")
    assert "colour 'blue' of 'CSA': expected a colour such as '#0033d3'" in said


def test_json_has_the_same_answer(capsys):
    found = answer(capsys, "analyse", MABBOB, *READ, "--certainty", 0.95, "--times", 6)
    runs = pb.read(MABBOB, direction="minimize", clock="evaluations")
    posterior = pb.fit(runs, times=pb.grid.from_runs(runs, 6))
    assert found["pareto"] == [*posterior.pareto(0.95)]
    assert found["verdict"] == str(posterior.verdict(0.95)).splitlines()
    assert found["times"] == posterior.times.tolist()
    assert found["in_pareto"] == posterior.prob_in_pareto()
    assert np.allclose(found["best"]["CSA"], posterior.prob_best()[:, 0])


@pytest.mark.slow
def test_a_posterior_and_a_store_are_analysed(kept, capsys):
    found = answer(capsys, "analyse", kept / "posterior.pb")
    assert found["instances"] == 60
    found = answer(capsys, "analyse", kept / "race.db")
    assert set(found["algorithms"]) > {"early", "late"}
    assert found["times"] == list(TIMES)  # those of the race, not of its runs
    assert not capsys.readouterr().err
    assert main(["analyse", str(kept / "race.db"), "--times", "4"]) != 0
    assert "--times is for files of results, but " in capsys.readouterr().err


@pytest.mark.slow
def test_replay_and_calibration_take_the_example(capsys):
    found = answer(capsys, "replay", *VARIANTS, "--times", 3, "--certainty", 0.95)
    assert found["full"]["runs"] == 420
    found = answer(capsys, "calibration", *VARIANTS, "--times", 2, "--replicates", 2)
    assert found["instances"] == 60


def test_times_may_be_listed(capsys):
    found = answer(capsys, "analyse", MABBOB, *READ, "--times", "100,1000,5000")
    assert found["times"] == [100, 1000, 5000]
    with pytest.raises(SystemExit):
        main(["analyse", str(MABBOB), *READ, "--times", "ten"])
    assert (
        "'ten': expected a number of times, or times separated by commas" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no data were given: name a file or a folder, or pass --example"),
        (["nothing"], "nothing: there is no such file or folder"),
        (["here.csv", "--example"], "--example comes with its own data: leave out here.csv"),
        (["--example", "--until", "9"], "--until is for files of results, but --example comes"),
        ([MABBOB], "pass --direction minimize or --direction maximize"),
        ([MABBOB, *READ, "--certainty", "0.3"], "--certainty 0.3: expected a probability"),
        ([MABBOB, *READ, "--algorithm", "solver"], "which one it is with --algorithm algorithm"),
        ([MABBOB, *READ, "--format", "cvs"], "--format cvs: expected one of"),
        (["{kept}/race.toml"], "describes a race and holds no results: run `polarbear race"),
        (["{kept}/posterior.pb", *READ], "--direction is for files of results, but "),
        (["{kept}/race.db", "--clock", "s"], "--clock is for files of results, but "),
        (["{kept}/ratings.json"], "holds only ratings: use `polarbear select`"),
        ([MABBOB, *READ, "--open"], "--open needs a report to show: pass --report FILE as well"),
        ([MABBOB, *READ, "--save", "/nowhere/x"], "/nowhere/x: there is no folder /nowhere"),
    ],
)
def test_error_messages_name_options(kept, words, message, capsys):
    said = refusal(capsys, "analyse", *(str(word).format(kept=kept) for word in words))
    assert message in said
    assert "=" not in said.replace("min=", "")


def test_assumptions_about_the_data_are_printed(tmp_path, capsys):
    path = tmp_path / "results.csv"
    rows = [f"{a},{i},{t},{v}" for i in range(9) for a, t, v in (("a", 1, 3), ("b", 1, 2))]
    path.write_text("algorithm,instance,time,value\n" + "\n".join([*rows, "a,0,5,1"]))
    assert main(["analyse", str(path), "--direction", "minimize"]) == 0
    said = capsys.readouterr().err
    assert said.startswith("polarbear: note: the table does not say until when")
    assert "--until last, --until instance or --until 100000" in said
    assert main(["analyse", str(path), "--direction", "minimize", "--until", "9.5"]) == 0
    assert not capsys.readouterr().err


# report


@pytest.mark.slow
def test_a_report_of_everything(kept, tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    page = tmp_path / "a report.html"
    found = answer(capsys, "analyse", kept / "posterior.pb", "--report", page, "--open")
    assert found["report"] == str(page)
    assert opened == [page.as_uri()]
    said = page.read_text("utf-8")
    assert "RS is replaceable by CSA" in said
    assert "polarbear analyse" in said  # the command that made it
    for source in ([kept / "race.db"], [MABBOB, *READ, "--times", 4]):
        found = answer(capsys, "report", *source, page, "--title", "Nightly")
        assert found["bytes"] == page.stat().st_size
        assert "Nightly" in page.read_text("utf-8")
    assert "--certainty 7: expected" in refusal(
        capsys, "report", MABBOB, *READ, page, "--certainty", 7
    )
    assert "is a folder" in refusal(capsys, "report", kept / "race.db", tmp_path)


def test_a_report_has_a_default_target_and_overwrites_nothing_unasked(
    kept, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    race = kept / "race.db"
    assert main(["report", str(race)]) == 0
    assert capsys.readouterr().out.startswith("report.html: ")
    assert Path("report.html").exists()
    before = Path("report.html").stat().st_mtime_ns
    assert "report.html exists already" in refusal(capsys, "report", race)
    assert Path("report.html").stat().st_mtime_ns == before
    answer(capsys, "report", race, "-o", "other.html")
    assert Path("other.html").exists()
    assert "name only one" in refusal(capsys, "report", race, "a.html", "-o", "b.html")


# Provenance


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("analyse", "{file}", *READ, "--times", "3"),
        ("analyse", "{kept}/posterior.pb"),
        ("analyse", "{kept}/race.db"),
        ("select", "{file}", *READ, "--times", "3"),
        ("select", "{kept}/race.db"),
        ("select", "{kept}/ratings.json"),
        ("report", "{kept}/race.db", "{tmp}/report.html"),
        ("replay", "{file}", *READ, "--times", "3"),
        ("replay", "{file}", *READ, "--times", "3", "--repeat", "2"),
        ("calibration", "{file}", *READ, "--times", "2", "--replicates", "2"),
        ("status", "{kept}/race.db"),
        ("read", "{kept}/race.db", "--output", "{tmp}/runs.csv"),
        ("backup", "{kept}/race.db", "{tmp}/backup.db"),
        ("repair", "{kept}/race.db", "{tmp}/new.db"),
        ("forget", "{tmp}/copy.db", "--algorithm", "bad", "--why", "to see"),
        ("merge", "{kept}/race.db", "{tmp}/all.db"),
    ],
)
def test_every_json_answer_has_its_provenance(words, kept, tmp_path, capsys):
    words = [word.format(file=MABBOB, kept=kept, tmp=tmp_path) for word in words]
    shutil.copy(kept / "race.db", tmp_path / "copy.db")
    origin = answer(capsys, *words)["provenance"]
    assert origin["command"] == shlex.join(["polarbear", *words, "--json"])
    assert datetime.now(UTC) - datetime.fromisoformat(origin["made"]) < timedelta(minutes=10)
    assert origin["versions"]["polarbear-race"] == pb.__version__
    assert origin["versions"]["numpy"] == np.__version__
    (source,) = origin["sources"]
    assert source["name"] == words[1]
    if source["kind"] == "store":
        with pb.open_store(words[1], read_only=True) as store:
            assert source["events"] == store.n_events
    else:
        assert source["sha256"] == hashlib.sha256(Path(words[1]).read_bytes()).hexdigest()
    if words[0] in ("analyse", "select", "report", "replay", "calibration"):
        known = source["kind"] != "ratings"
        model = {"prior": "Dirichlet(alpha=1.0)", "evidence": "instances", "method": "laplace"}
        assert origin["model"] == (model if known else None)
        assert (origin["instances"] is None) == (not known)
    if source["kind"] == "store":
        with pb.open_store(words[1], read_only=True) as store:
            assert source["instances"] == len(store.runs().instances)
        assert origin["model"] == source["model"]
        assert origin["instances"] is not None


@pytest.mark.slow
def test_the_digest_of_a_folder_covers_names_and_contents(tmp_path, capsys):
    folder = tmp_path / "results"
    (folder / "deep").mkdir(parents=True)
    table = MABBOB.read_text()

    def digest():
        words = ("replay", folder, *READ, "--times", 2)
        (source,) = answer(capsys, *words)["provenance"]["sources"]
        return source["sha256"]

    (folder / "deep" / "mabbob.csv").write_text(table)
    first = digest()
    content = hashlib.sha256(table.encode()).hexdigest()
    listed = f"{content}  deep/mabbob.csv\n"  # what `sha256sum` prints
    assert hashlib.sha256(listed.encode()).hexdigest() == first
    (folder / ".hidden").write_text("")
    assert digest() == first
    (folder / "deep" / "mabbob.csv").rename(folder / "mabbob.csv")
    assert digest() != first


# select


def test_select_explains_what_a_selector_needs(tmp_path, capsys):
    rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 30)
    features = {"variables": range(30), "density": np.linspace(0, 1, 30)[::-1] ** 2}
    posterior = pb.fit(rankings, features={"instance": rankings.instances, **features})
    path = tmp_path / "selector.npz"
    pb.selection.InstanceRatings.of(posterior, draws=50).save(path)
    words = ["select", path, "--final"]
    chosen = answer(capsys, *words, "--features", "variables=3", "--features", "density=0.5")
    assert chosen["provenance"]["sources"][0]["kind"] == "selector"
    said = refusal(capsys, *words, "--features", "variables=abc")
    assert "variables='abc': expected a number" in said
    said = refusal(capsys, *words)
    assert "rates algorithms by instance: pass --features variables=... --features density" in said
    assert "use `polarbear select`" in refusal(capsys, "analyse", path)
    said = refusal(capsys, *words, "--features", "variables=3", "--losses", "ratio")
    assert "--losses needs runs" in said
    words = ["--direction", "minimize", "--at", "60", "--features", "variables=2000"]
    said = refusal(capsys, "select", MABBOB, *words)
    assert "--features needs a selector, a file of InstanceRatings.save" in said
    missing = refusal(capsys, "select", tmp_path / "missing.npz", *words)
    assert "there is no such file" in missing


@pytest.mark.slow
def test_sure_is_reported_in_text_json_and_exit_code(kept, capsys):
    words = ["select", str(kept / "posterior.pb"), "--between", "100", "200", "--sure"]
    for sure, code in (("0.9", 0), ("0.99", 3)):
        assert main([*words, sure]) == code
        said = capsys.readouterr().out
        assert f"sure: {'met' if code == 0 else 'not met'}, P(best) = 0.9" in said
        assert main([*words, sure, "--json"]) == code
        answered = json.loads(capsys.readouterr().out)
        assert answered["met"] is (code == 0)
        assert answered["sure"] == float(sure)
    assert answer(capsys, *words[:-1])["met"] is None
    assert "--sure 95: expected a probability" in refusal(capsys, *words, 95)
    with pytest.raises(SystemExit):
        main(["select", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "does not bound the probability of a wrong choice; sure does" in told


def test_a_range_beyond_the_data_is_clipped_and_both_are_reported(kept, capsys):
    found = answer(capsys, "select", kept / "posterior.pb", "--between", 3000, 1e6)
    assert found["range"] == {"asked": [3000, 1e6], "used": [3000, 10_000]}
    assert found["clock"] == "evaluations"
    assert main(["select", str(kept / "posterior.pb"), "--between", "3000", "1e6"]) == 0
    assert "times used: 3,000 to 10,000" in capsys.readouterr().out
    found = answer(capsys, "select", kept / "posterior.pb")
    assert found["range"] == {"asked": [None, None], "used": [100, 10_000]}
    found = answer(capsys, "select", kept / "posterior.pb", "--final")
    assert found["range"]["used"] == [10_000, 10_000]


@pytest.mark.parametrize(
    ("words", "preference", "more"),
    [
        ((), None, {}),
        (("--at", 200, "--risk", 0.05), pb.preferences.at(200), {"risk": 0.05}),
        (
            ("--between", 100, 900, "--scale", "log"),
            pb.preferences.between(100, 900, scale="log"),
            {},
        ),
        (("--final", "--risk", "best"), pb.preferences.final(), {"risk": "best"}),
        (
            (
                "--between",
                200,
                9000,
                "--size",
                2,
                "--no-repeats",
                "--among",
                "CSA",
                "--among",
                "RS",
            ),
            pb.preferences.between(200, 9000),
            {"size": 2, "repeats": False, "among": ["CSA", "RS"]},
        ),
    ],
)
def test_the_choice_equals_that_of_select(kept, words, preference, more, capsys):
    wanted = pb.select(pb.Posterior.load(kept / "posterior.pb"), preference, **more)
    found = answer(capsys, "select", kept / "posterior.pb", *words)
    assert found["algorithms"] == [*wanted.algorithms]
    assert found["preference"] == wanted.preference
    assert [one["regret"] for one in found["choices"]] == [c.regret for c in wanted.choices]


@pytest.mark.slow
def test_select_takes_every_kind_of_source(kept, capsys):
    when = ("--around", 5000)
    first = answer(capsys, "select", kept / "posterior.pb", *when)
    assert first["preference"] == "around 5,000, within a factor of 2, in evaluations"
    for source in ([kept / "ratings.json"], [MABBOB, *READ], VARIANTS):
        assert answer(capsys, "select", *source, *when)["algorithms"] == first["algorithms"]
    assert answer(capsys, "select", kept / "race.db", "--at", 1)["algorithms"] == ["early"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--at", 5), "the time 5 "),
        (("--between", 9, 3), "--between 9 3: the range is empty; swap its ends"),
        (("--around", -3), "--around -3: expected a finite time above 0"),
        (("--risk", "low"), "--risk low: expected 'expected', 'best'"),
        (("--risk", 7), "--risk 7: expected the level of a quantile between 0 and 1"),
        (("--size", 0), "--size 0: expected the number of parallel runs"),
        (("--size", 9, "--no-repeats"), "pass --repeats, or a smaller size"),
        (("--among", "CSB"), "did you mean 'CSA'"),
        (("--at", 500, "--scale", "log"), "--scale applies only to --between"),
    ],
)
def test_wrong_preferences_are_refused(kept, words, message, capsys):
    assert message in refusal(capsys, "select", kept / "ratings.json", *words)


# JSON of the other commands


def test_times_may_have_units_where_the_clock_counts_seconds(tmp_path, capsys):
    rows = "".join(
        f"{who},{i},{t},{int(i) + t}\n" for who in "ab" for i in "123" for t in (60, 7200)
    )
    file = tmp_path / "t.csv"
    file.write_text("algorithm,instance,time,value\n" + rows)
    words = ["select", file, "--direction", "maximize", "--until", "7200"]
    found = answer(capsys, *words, "--clock", "seconds", "--between", "1h", "100m")
    assert found["preference"].startswith("from 3,600 to 6,000")
    assert "counts seconds: pass --clock seconds, or give the time" in refusal(
        capsys, *words, "--at", "1h"
    )
    said = refusal(capsys, "select", "--example", "--at", "1h")
    assert "this clock counts evaluations: give the time without a unit" in said


def test_analyse_is_spelled_either_way(kept, capsys):
    assert main(["analyze", str(kept / "posterior.pb")]) == 0
    assert "Pareto set" in capsys.readouterr().out


@pytest.mark.slow
def test_other_commands_answer_in_json(kept, tmp_path, capsys):
    found = answer(capsys, "status", kept / "race.db")
    assert found["n_runs"] == sum(
        sum(own.values()) for own in found["store"]["run_statuses"].values()
    )
    found = answer(capsys, "replay", MABBOB, *READ, "--times", 4, "--certainty", 0.95)
    assert set(found["eliminated"]) == {"RS"}
    few = ("--times", 3, "--repeat", 2, "--workers", 2)
    assert len(answer(capsys, "replay", MABBOB, *READ, *few)["replays"]) == 2
    found = answer(capsys, "calibration", MABBOB, *READ, "--times", 3, "--replicates", 3)
    assert found["replicates"] == 3
    assert found["verdict"] in ("calibrated", "overconfident", "underconfident", "unknown")
    found = answer(capsys, "repair", kept / "race.db", tmp_path / "new.db")
    assert found["lost"] == {}
    found = answer(capsys, "merge", kept / "race.db", tmp_path / "new.db", tmp_path / "all.db")
    assert found["conflicts"] == []
    pytest.importorskip("pyarrow")
    found = answer(capsys, "read", kept / "race.db", "--output", tmp_path / "runs.parquet")
    assert found["runs"] == answer(capsys, "status", kept / "race.db")["n_runs"]


def test_the_suffix_chooses_the_format_of_a_race_that_is_written(kept, tmp_path, capsys):
    target = tmp_path / "runs.csv"
    assert answer(capsys, "read", kept / "race.db", "-o", target)["target"] == str(target)
    assert target.read_text().startswith("algorithm,instance,repetition,time,value,until,status\n")
    with pb.open_store(kept / "race.db", read_only=True) as store:
        runs = store.runs()
    assert pb.read(target, direction=runs.direction, clock=runs.clock) == runs
    said = refusal(capsys, "read", kept / "race.db", "-o", tmp_path / "runs.xlsx")
    assert "expected a name that ends in .csv, .parquet or .pq, or the format ioh or coco" in said
    assert not (tmp_path / "runs.xlsx").exists()


def test_one_file_per_run_and_where_times_start(tmp_path, capsys):
    rng = random.Random(1)
    for k, name in enumerate(["CMA", "DE"]):
        for instance in range(20):
            file = tmp_path / "runs" / name / f"f{instance}_s1.csv"
            file.parent.mkdir(parents=True, exist_ok=True)
            rows = [f"1,{rng.random() + 9}", f"10,{rng.random() + 5}", f"100,{k}"]
            file.write_text("\n".join([["evals,best", "fe,loss"][k], *rows]))
    analyse = ["analyse", tmp_path / "runs", "--direction", "minimize", "--clock", "evaluations"]
    said = refusal(capsys, *analyse)
    names = ["--names", "{algorithm}/{instance}_s{repetition}.csv"]
    columns = ["--columns", "time=evals,fe", "--columns", "value=best,loss"]
    assert f"pass --names '{names[1]}', {' '.join(columns)} (" in said
    assert main([*map(str, analyse), *names, *columns]) == 0
    told = capsys.readouterr()
    assert "1 to 10 evaluations" in told.err
    assert "Start later with --from 100, if" in told.err
    assert "DE is dominated" not in told.out
    assert main([*map(str, analyse), *names, *columns, "--from", "100"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert "DE is replaceable by CMA" in told.out
    said = refusal(capsys, *analyse, *names, *columns, "--times", "1,10", "--from", "50")
    assert "none of --times is between --from 50 and --to inf" in said
    said = refusal(capsys, *analyse, *names, *columns, "--to", "2h")
    assert "a time with a unit (ms, s, m, h or d) needs a clock that counts seconds" in said


def test_race_refuses_a_store_in_place_of_a_file(kept, capsys):
    said = refusal(capsys, "race", kept / "race.db")
    assert "pass the TOML file of the race" in said


# Output


@pytest.mark.slow
def test_a_closed_pipe_causes_no_error_message(kept):
    command = [sys.executable, "-m", "polarbear", "status", str(kept / "race.db")]
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_control_characters_are_escaped(tmp_path, capsys):
    path = tmp_path / "results.csv"
    rows = [f"{a},{i},1,{v}" for i in range(9) for a, v in (("\x1b[2Ja", i), ("b", 5))]
    path.write_text("algorithm,instance,time,value\n" + "\n".join(rows))
    assert main(["analyse", str(path), "--direction", "minimize"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert r"\x1b[2Ja" in said


# Forms of input


@pytest.mark.parametrize("command", ["status", "read", "analyse"])
def test_the_file_of_a_race_is_refused_in_place_of_its_store(command, tmp_path, capsys):
    file = tmp_path / "race.toml"
    file.write_text('store = "night.db"')
    said = refusal(capsys, command, file)
    assert f"pass its store, {tmp_path}/night.db" in said
    assert "polarbear race" in said


def test_probabilities_in_percent_and_durations_with_units(tmp_path, capsys):
    rows = [f"{name},{k},{t},{k + t * s}" for k in range(20) for t in (0.1, 1, 300)
            for name, s in (("a", -1), ("b", -2))]  # fmt: skip
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["algorithm,instance,time,value", *rows]))
    options = ["--direction", "minimize", "--clock", "seconds"]
    words = ["select", file, *options, "--between", "200ms", "4 min", "--sure", "95%"]
    found = answer(capsys, *words)
    assert (found["sure"], found["met"]) == (0.95, True)
    assert found["range"]["asked"] == [0.2, 240.0]


def test_read_sums_up(capsys, tmp_path):
    (tmp_path / "SCIP__p1.log").write_text("0.5 o 3\n")
    (tmp_path / "notes.md").write_text("x")
    assert main(["read", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("1 run: 1 algorithm on 1 instance, minimize")
    assert answer(capsys, "read", "--example")["runs"] == 720
    assert answer(capsys, "read", *VARIANTS)["runs"] == 420
    with pytest.raises(SystemExit):
        main(["read", "--example", "here.csv"])
    assert "invalid choice: 'here.csv' (choose from" in capsys.readouterr().err


def test_read_converts(capsys, tmp_path):
    runs = pb.example("cma-variants")
    options = {"direction": "minimize", "clock": "evaluations"}
    for target, more, known in (("runs.csv", [], options), ("ioh", ["--as", "ioh"], {})):
        words = ["read", *VARIANTS, "--output", tmp_path / target, *more]
        assert answer(capsys, *words)["target"] == str(tmp_path / target)
        assert pb.read(tmp_path / target, **known) == runs
    assert "--as ioh is the format" in refusal(capsys, "read", *VARIANTS, "--as", "ioh")


def test_read_refuses_what_holds_no_results(kept, capsys):
    assert "see `polarbear report`" in refusal(capsys, "read", kept / "posterior.pb")


def test_cite_prints_bibtex_and_the_texts_of_a_race(capsys, kept):
    assert main(["cite"]) == 0
    assert capsys.readouterr().out.startswith("@unpublished{wurth2026pareto,\n")
    told = answer(capsys, "cite", kept / "race.db")
    assert told["methods"].startswith("We raced ")
    assert "\\toprule" in told["table"]
    assert main(["cite", str(kept / "race.db")]) == 0
    assert capsys.readouterr().out == f"{told['methods']}\n\n{told['table']}\n{told['bibtex']}\n"
    words = ("cite", kept / "race.db", "--certainty", 0.9)
    assert "a race has its own: leave it out" in refusal(capsys, *words)


def test_cite_prints_the_texts_of_a_posterior(capsys, kept):
    posterior = pb.Posterior.load(kept / "posterior.pb")
    told = answer(capsys, "cite", kept / "posterior.pb", "--certainty", 0.95)
    assert told["methods"] == pb.papers.describe_methods(posterior, 0.95)
    assert told["table"] == pb.papers.to_latex(posterior, certainty=0.95)
    assert answer(capsys, "cite", kept / "posterior.pb")["table"] == pb.papers.to_latex(posterior)
    said = refusal(capsys, "cite", MABBOB)
    assert f"analyse {MABBOB} --save posterior.zip`, then `polarbear cite" in said


@pytest.mark.parametrize(
    ("options", "model"),
    [
        ([], ("rankings", "averaged")),
        (["--ties", "unordered"], ("rankings", "unordered")),
        (["--evidence", "instances"], ("instances", "averaged")),
        (["--evidence", "instances", "--ties", "unordered"], ("instances", "unordered")),
    ],
)
@pytest.mark.parametrize("repeat", [1, 2])
def test_an_option_of_the_fit_beside_a_question_is_used(
    capsys, monkeypatch, options, model, repeat
):
    seen = []

    def replay(_, question, **_options):
        seen.append(question)
        raise pb.DataError("seen")

    monkeypatch.setattr(pb, "replay", replay)
    monkeypatch.setattr(pb.simulation, "replay_many", replay)
    words = [
        "replay",
        "--example",
        "--question",
        "PaperParetoSet",
        "--times",
        "3",
        "--repeat",
        repeat,
    ]
    assert main([*map(str, words), *options]) == 1
    capsys.readouterr()
    used = seen[0].model
    assert (used.evidence, used.ties) == model


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--regret", "0.2"], "--regret and --size are about a choice: pass --between as well"),
        (["--size", "2"], "--regret and --size are about a choice: pass --between as well"),
        (["--elimination", "joint"], "ParetoSet has no 'elimination'; PaperParetoSet"),
        (["--question", "PaperParetoSet", "--errors", "whole_race"], "has no 'errors'; ParetoSet"),
        (["--between", "1", "9", "--errors", "whole_race"], "Choice has no 'errors'; ParetoSet"),
        (
            ["--between", "1", "9", "--question", "PaperParetoSet"],
            "--between asks for a choice, not for PaperParetoSet: pass only one",
        ),
    ],
)
def test_options_of_another_question_are_refused(capsys, options, message):
    assert message in refusal(capsys, "replay", "--example", "--times", "3", *options)


def test_the_options_of_a_choice_are_not_dropped(capsys):
    words = ["replay", "--example", "--times", "3", "--between", "100", "1000", "--json"]
    assert main([*words, "--regret", "0.2", "--size", "2"]) == 0
    question = json.loads(capsys.readouterr().out)["setup"]["question"]
    assert (question["kind"], question["regret"], question["size"]) == ("Choice", 0.2, 2)


def test_times_that_rest_on_few_instances_are_left_out_by_an_option(tmp_path, capsys):
    """The advice of the command is the one of Python, and following it ends the warning."""
    rng = np.random.default_rng(0)
    records = [
        pb.Run(a, f"i{k}", [1, 10, 1234.5678], rng.random(3), 1234.5678 if k < 30 else 20_000)
        for a in "ab"
        for k in range(32)
    ]
    pb.Runs.from_records(records, direction="minimize").to_csv(tmp_path / "r.csv")
    command = ["analyse", str(tmp_path / "r.csv"), "--direction", "minimize", "--to", "20000"]
    assert main(command) == 0
    advice = "elsewhere on up to 32: leave them out with --to 1234.5678"
    assert advice in capsys.readouterr().err
    assert main([*command[:-1], "1234.5678"]) == 0
    assert "leave them out" not in capsys.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("top", 2), ("targets", "all")])
def test_a_race_refuses_options_of_rankings_that_it_has_not(name, value):
    with pytest.raises(pb.DataError, match=rf"a race has no {name}; analyse its runs with fit\("):
        pb.Race(["a", "b"], [1], direction="minimize", question=pb.ParetoSet(fit={name: value}))


def test_the_paper_in_one_command(capsys):
    """Both configurations, for recorded data and for a replay; an option beside them is used."""
    asked = ["--question", "PaperParetoSet", "--over-time", "independent", "--times", "5", "--json"]
    assert main(["analyse", *VARIANTS, *asked]) == 0
    found = json.loads(capsys.readouterr().out)
    runs = pb.example("cma-variants")
    times = pb.grid.from_runs(runs, 5)
    model = pb.PaperParetoSet("independent").model
    posterior = pb.fit(pb.rank(runs, times, **model.rank_options()), **model.fit_options())
    said = posterior.paper_verdict(0.99, elimination="pointwise", resolution="strict")
    assert found["verdict"] == str(said).splitlines()
    assert found["provenance"]["model"]["evidence"] == "rankings"
    assert main(["replay", *VARIANTS, *asked, "--certainty", "0.9"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    question = pb.PaperParetoSet("independent", certainty=0.9)
    again = pb.replay(runs, question, times=times)
    assert replayed["pareto"] == list(again.pareto)
    assert replayed["setup"]["question"]["certainty"] == 0.9
    prior = ["--prior", "BSpline(warp=linear, degree=2)"]
    assert main(["analyse", *VARIANTS, *asked[:2], *prior, "--times", "5", "--json"]) == 0
    assert "degree=2" in json.loads(capsys.readouterr().out)["provenance"]["model"]["prior"]
    assert main(["analyse", *VARIANTS, "--over-time", "temporal"]) == 1
    assert "pass that as well" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("BSpline", "linear"),
        ("BSpline(degree=2)", "linear"),
        ("BSpline(warp=auto)", "linear"),
        ("BSpline(warp=log)", "log"),
    ],
)
def test_a_prior_of_the_paper_takes_time_as_it_is_unless_it_is_to_be_logarithmic(said, meant):
    asked = ["analyse", "--example", "--question", "PaperParetoSet", "--prior", said]
    prior = get_model(make_parser().parse_args(asked)).prior
    assert prior.warp == meant
    assert pb.PaperParetoSet(fit={"prior": parse_prior(said)}).model.prior == prior
    given = make_prior(parse_prior(said))
    assert pb.PaperParetoSet(fit={"prior": given}).model.prior == prior
    assert (
        pb.PaperParetoSet(fit=partial(pb.fit, prior=given)).model
        == pb.PaperParetoSet(fit={"prior": given}).model
    )


def test_an_option_of_none_is_that_of_the_question():
    """A study raced by a Dirichlet prior, jointly, in place of the paper's two configurations."""
    assert pb.PaperParetoSet(fit={"prior": None}).model == pb.PaperParetoSet().model
    assert pb.PaperParetoSet(fit=pb.fit).model == pb.PaperParetoSet().model


def test_select_looks_for_a_schedule(capsys):
    assert main(["select", "--example", "--at", "5000", "--schedule", "2"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("run CMA-ES")
    assert "on instances held out" in text
    assert main(["select", "--example", "--final", "--schedule", "2", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["steps"][-1][1] is None
    assert 0 <= plain["probability"] <= 1


@pytest.mark.slow
def test_a_race_by_the_paper_is_analysed_by_its_own_question(tmp_path, capsys):
    """By another question, at another certainty, or with another prior it had another answer."""
    runs = pb.simulation.simulate_runs(np.array([[1.5, 0.0]] * 4), 12)
    own = pb.PaperParetoSet("independent", certainty=0.98, fit={"prior": pb.priors.Dirichlet(2.0)})
    times = [0.0, 1.0, 2.0, 3.0]
    store = tmp_path / "race.db"
    pb.race(
        {name: partial(_replay, runs=runs, name=name) for name in runs.algorithms},
        list(runs.instances),
        times,
        direction="minimize",
        clock="reported",
        question=own,
        store=store,
    )
    found = answer(capsys, "analyse", store)
    assert found["certainty"] == 0.98
    assert found["provenance"]["model"]["prior"] == "Dirichlet(alpha=2.0)"
    assert found["provenance"]["model"]["evidence"] == "rankings"
    assert "a1 is a member of the Pareto set" in found["verdict"][0]
    given = answer(capsys, "analyse", store, "--question", "PaperParetoSet", "--prior", "BSpline")
    assert given["certainty"] == 0.98
    assert given["provenance"]["model"]["prior"].startswith("BSpline")
    other = answer(capsys, "analyse", store, "--over-time", "temporal")
    assert other["certainty"] == 0.98
    assert other["provenance"]["model"]["prior"].startswith("GP")


def _replay(job, runs, name):
    run = next(one for one in runs if one.algorithm == name and one.instance == job.instance)
    for time, value in zip(run.time, run.value, strict=True):
        job.report(value, time=time)


def test_the_question_of_the_paper_has_the_certainty_of_the_paper(capsys):
    words = ("analyse", *VARIANTS, "--question", "PaperParetoSet", "--over-time", "independent")
    assert answer(capsys, *words, "--times", 2)["certainty"] == 0.99
    assert answer(capsys, *words, "--times", 2, "--certainty", 0.9)["certainty"] == 0.9


def test_a_posterior_of_another_model_is_no_answer_of_the_paper(tmp_path, capsys):
    path = tmp_path / "posterior.zip"
    answer(capsys, "analyse", *VARIANTS, "--times", 2, "--save", path)
    found = answer(capsys, "analyse", path, "--question", "PaperParetoSet")
    said = "This posterior has instances as evidence, not every ranking, as in the paper."
    assert said in found["cautions"]
