"""The gate: wrong answers are as rare as stated; programs, exit codes, resumption."""

import json
import sys
from itertools import combinations

import numpy as np
import pytest
from judge.in_process import InProcess

import polarbear as pb
from polarbear.cli.main import main
from polarbear.inference.e_values import Shares
from polarbear.inference.replacing import PairTables
from polarbear.racing.events import Removed
from polarbear.racing.questions.no_worse import (
    NoWorse,
    estimate_win_probability,
    find_decisive_instances,
    find_provable,
    judge,
)
from polarbear.store.opening import open_store

SOLVER = """
import random, sys
seed, shift = sys.argv[1:3]
print("value", random.Random(seed).random() + float(shift))
"""


def tables_of(won):
    """The tables of a new version that won (T, I) or lost, at times that are stretches."""
    won = np.asarray(won, dtype=float)
    one = PairTables.of_wins(won.shape[1])
    cells = [np.stack([1 - row, row], axis=1) for row in won]
    return PairTables(one.instances, cells, one.won * len(won), one.lost * len(won))


def judged(wins, losses, margin=0.05, shares=None, question=None):
    """The answer about new versions with so many wins and losses at each time (T,) or (T, k)."""
    wins, losses = (np.asarray(one, dtype=float).reshape(len(wins), -1) for one in (wins, losses))
    tables = tables_of(np.zeros((len(wins), 1)))
    counts = [np.stack(both, axis=1) for both in zip(losses, wins, strict=True)]
    return judge(question or NoWorse("old", margin=margin), tables, counts, shares or Shares())


def test_pass_and_fail():
    assert judged([400, 400], [380, 380]) == ["passed"]
    assert judged([400, 10], [380, 10]) == ["undecided"]
    assert judged([400, 20], [380, 80]) == ["failed"]
    assert judged([40], [5]) == ["passed"]
    assert judged([0], [0]) == ["undecided"]


@pytest.mark.parametrize("end", [None, 12, 60])
@pytest.mark.parametrize(
    ("p", "wrong"),
    [([0.4 - 1e-9, 0.6], "passed"), ([0.4, 0.4, 0.4], "failed"), ([0.5, 0.4], "failed")],
)
def test_error_rates_at_the_margin(p, wrong, end):
    """New versions that win with these probabilities, looked at after every 8 instances."""
    rng, gates, n = np.random.default_rng(0), 400, 0
    wins, answers = np.zeros((len(p), gates)), np.array(["undecided"] * gates)
    while n < (end or 960):
        more = min(8, (end or 960) - n)
        n += more
        wins += rng.binomial(more, np.array(p)[:, None], wins.shape)
        shares = Shares() if end is None else Shares.at_end_of(end)
        shares = shares if n == end else shares._replace(now=0.0)
        now = np.array(judged(wins, n - wins, 0.1, shares))
        answers = np.where(answers == "undecided", now, answers)
    assert np.mean(answers == wrong) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / gates)


def test_where_most_duels_tie_the_absolute_margin_counts():
    """Losses exceed wins by 8 % of the instances, though nine of ten decided duels are lost."""
    tables = PairTables(("",), [np.zeros((1, 3))], [np.array([0, 0, 1.0])], [np.array([0, 1.0, 0])])
    for lost, answer in ((0.09, "passed"), (0.3, "failed")):
        counts = np.array([[0.99 - lost, lost, 0.01]]) * 20_000
        assert judge(NoWorse("old"), tables, [counts], Shares()) == [answer]


def test_decisive_instances_are_as_few_as_enumeration_finds():
    question, compared = NoWorse("old", margin=0.2, certainty=0.6), 0
    for seed in range(8):
        won = np.random.default_rng(seed).random((1, 9)) < 0.85
        tables = tables_of(won)
        found = find_decisive_instances(question, tables, Shares())
        fewest = next(
            size
            for size in range(10)
            for chosen in combinations(range(9), size)
            if judged(
                np.delete(won, chosen, axis=1).sum(axis=1),
                np.delete(~won, chosen, axis=1).sum(axis=1),
                question=question,
            )
            == ["undecided"]
        )
        assert len(found) == fewest
        compared += len(found) > 1
    assert compared > 1


@pytest.mark.parametrize("margin", [0.3, 0.4, 0.49])
def test_a_new_version_that_always_loses_fails_at_any_margin(margin):
    assert judged([0], [4000], margin) == ["failed"]
    assert judged([4000], [0], margin) == ["passed"]


def test_a_gate_with_few_instances_says_what_it_could_and_did_show():
    def old(job):
        yield 1, job.rng.random()

    made = pb.gate(old, old, range(12), [1], direction="minimize", executor=InProcess())
    assert made.answer == "undecided"
    n, passing, failing = made.provable
    assert (n, 0.1 < made.proven_margin < 0.5) == (12, True)
    assert 0.7 < passing < 0.9
    assert 0 < failing < 0.2
    assert f"12 instances can show a pass from {100 * passing:.0f} % wins on" in str(made)
    assert f"nowhere worse by more than {made.proven_margin:g}." in made.markdown()
    none = find_provable(NoWorse("old"), 2, Shares.at_end_of(2))
    assert none == (None, None)


def test_the_estimate_allows_for_stopping():
    """The share of wins at the stop is too large in most gates, the estimate in about half.

    studies/gate has the figures of more gates.
    """
    rng, p, shares, estimates = np.random.default_rng(5), 0.65, [], []
    question, budget = NoWorse("old", margin=0.05), pb.Budget(batch=(8, 8))
    for _ in range(50):
        won = np.zeros(0)
        while judged([won.sum()], [(1 - won).sum()]) == ["undecided"]:
            won = np.append(won, rng.random(8) < p)
        shares.append(won.mean())
        data, tables = np.array([[won], [0 * won], [1 - won]]), tables_of([won])
        estimates.append(estimate_win_probability(data, tables, question, budget, decided=True)[0])
    assert np.median(shares) > p + 0.02
    assert abs(np.median(estimates) - p) < 0.02
    assert np.mean(estimates) < np.mean(shares)


def test_the_estimate_of_gates_without_a_difference_or_a_doubt():
    wins, ties = np.ones((1, 16)), np.ones((1, 60))
    always = np.array([wins, 0 * wins, 0 * wins])
    never = np.array([0 * ties, ties, 0 * ties])
    tied = PairTables(("",), [np.ones((60, 1))], [np.zeros(1)], [np.zeros(1)])
    for data, tables, decided, expected in (
        (always, tables_of(wins), True, 1.0),
        (never, tied, True, 0.5),
        (always[..., :1], tables_of(wins[:, :1]), False, 1.0),
    ):
        question = NoWorse("old")
        assert estimate_win_probability(data, tables, question, decided=decided) == expected


@pytest.mark.parametrize(
    ("shift", "noise", "answer", "instances"),
    [(-1, 1, "pass", 8), (1, 1, "fail", 16), (0, 0, "pass", 72)],
)
def test_how_many_instances_the_clearest_gates_take(shift, noise, answer, instances):
    """docs/how-to/gate.md states these numbers."""

    def old(job):
        yield 1, noise * job.rng.random()

    def new(job):
        yield 1, noise * job.rng.random() + shift

    made = pb.gate(old, new, range(200), [1], direction="minimize", executor=InProcess())
    assert (made.answer, made.instances) == (answer, instances)


def test_a_changed_version_needs_a_new_store(tmp_path, capsys):
    (tmp_path / "i.txt").write_text("")
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(f"print(1)  # {name}")
    base = ["gate", "--old", f"{sys.executable} {tmp_path / 'a.py'}", "--pattern", "(?P<value>.)"]
    base += ["--budgets", "30", "--direction", "minimize", "--max-runs", "2", "--workers", "1"]
    base += ["--store", str(tmp_path / "gate.db"), str(tmp_path / "i.txt"), "--new"]
    assert main([*base, f"{sys.executable} {tmp_path / 'a.py'}"]) == 2
    assert main([*base, f"{sys.executable} {tmp_path / 'b.py'}"]) == 3
    message = capsys.readouterr().err
    assert "or name a new store" in message
    assert "accept" not in message


@pytest.mark.parametrize("margin", ["0", "0.5", "0.9", "-1", "nan"])
def test_the_message_on_a_wrong_margin(tmp_path, capsys, margin):
    (tmp_path / "i.txt").write_text("")
    options = ["--direction", "minimize", "--margin", margin]
    assert main([*COMMAND, str(tmp_path / "i.txt"), *options]) == 3
    assert "expected above 0 and below 0.5" in capsys.readouterr().err


@pytest.mark.parametrize("question", [pb.ParetoSet(), NoWorse("new"), NoWorse, "old"])
def test_a_gate_asks_one_question(question):
    """Before anything runs."""
    with pytest.raises(pb.DataError, match=r"question=.*: expected NoWorse\('old', \.\.\.\)"):
        pb.gate(print, print, range(9), [1], direction="minimize", question=question)


def test_the_question_of_a_gate_is_in_its_result():
    def old(job):
        yield 1, job.rng.random()

    question = NoWorse("old", margin=0.2, certainty=0.8)
    made = pb.gate(old, old, range(200), [1], direction="minimize", executor=1, question=question)
    assert (made.answer, made.verdict.kind) == ("pass", "passed")
    assert (made.verdict.margin, made.verdict.certainty) == (0.2, 0.8)
    assert made.verdict.clock == "evaluations"
    said = "not worse by more than 0.2 on any stretch of time; this is wrong with probability at "
    assert f"{said}most 0.2." in made.guarantee
    assert 0 < len(made.verdict.decisive) <= made.instances
    assert made.spent.runs == 2 * made.instances


@pytest.mark.slow
def test_a_gate_of_functions_resumes(tmp_path):
    def old(job):
        yield 1, job.rng.random()

    def same(job):
        yield 1, job.rng.random()

    options = {"direction": "minimize", "executor": 1, "store": tmp_path / "gate.db", "seed": 1}
    first = pb.gate(old, same, range(4000), [1], budget=pb.Budget(runs=40), **options)
    assert (first.answer, first.exit_code) == ("undecided", 2)
    assert first.ended == "budget of runs spent"
    again = pb.gate(old, same, range(4000), [1], budget=pb.Budget(runs=80), **options)
    assert again.answer in ("pass", "undecided")
    assert again.spent.runs > first.spent.runs > 0
    assert again.spent.time > first.spent.time
    assert again.times[0].wins + again.times[0].losses == again.instances
    assert again.times[0].low < again.times[0].estimate < again.times[0].high
    assert "No regression gate" in again.markdown()
    assert json.loads(json.dumps(again.to_dict()))["answer"] == again.answer


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "code", "answer"), [("1", 1, "fail"), ("-1", 0, "pass")])
def test_the_command_answers_by_its_exit_code(tmp_path, capsys, shift, code, answer):
    (tmp_path / "solver.py").write_text(SOLVER)
    instances = tmp_path / "instances"
    instances.mkdir()
    for k in range(8):
        (instances / f"{k}.txt").write_text(str(k))
    program = f"{sys.executable} {tmp_path / 'solver.py'} {{seed}}"
    command = ["gate", "--old", f"{program} 0", "--new", f"{program} {shift}", str(instances)]
    command += ["--pattern", r"value (?P<value>\\S+)", "--budgets", "5", "--direction", "minimize"]
    command += ["--reuse", "5", "--quiet", "--markdown", str(tmp_path / "summary.md")]
    command = [word.replace("\\\\", "\\") for word in command]
    assert main([*command, "--json"]) == code
    output = json.loads(capsys.readouterr().out)
    assert output["answer"] == answer
    assert f"**{answer}**" in (tmp_path / "summary.md").read_text()


COMMAND = ["gate", "--old", "x", "--new", "y", "--pattern", "(?P<value>.)", "--budgets", "1"]


def test_a_gate_that_cannot_run_has_another_exit_code(tmp_path, capsys):
    command = [*COMMAND, "--direction", "minimize", str(tmp_path / "missing")]
    assert main(command) == 3
    assert "there is no such file or folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--direction", "minimize", "--max-rnus", "9"],
        [],
        ["--direction", "minimize", "--max-runs", "many"],
    ],
)
def test_a_usage_error_is_not_the_answer_undecided(tmp_path, capsys, options):
    with pytest.raises(SystemExit) as end:
        main([*COMMAND, str(tmp_path), *options])
    assert end.value.code == 3
    assert "usage: polarbear" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(["analyse", "--no-such-option"])
    assert end.value.code == 2


def test_a_summary_that_cannot_be_written_is_not_the_answer_fail(tmp_path, capsys):
    (tmp_path / "i.txt").write_text("")
    command = [*COMMAND, "--direction", "minimize", str(tmp_path / "i.txt"), "--markdown"]
    assert main([*command, str(tmp_path / "missing" / "summary.md")]) == 3
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*reported no value")
def test_a_gate_without_any_value_is_an_error(tmp_path):
    def silent(_job):
        yield from ()

    options = {"direction": "minimize", "executor": 1, "store": tmp_path / "gate.db"}
    for _ in range(2):  # and if it is resumed
        with pytest.raises(
            pb.errors.SolverError, match="no run of either version reported a value"
        ):
            pb.gate(silent, silent, range(100), [1], budget=pb.Budget(runs=16), **options)


def test_a_command_whose_output_never_matches_cannot_be_run(tmp_path, capsys):
    (tmp_path / "i.txt").write_text("")
    program = f"{sys.executable} -c 'print(1)'"
    command = ["gate", "--old", program, "--new", program, "--pattern", "no (?P<value>.)"]
    command += ["--budgets", "30", "--direction", "minimize", "--max-runs", "2", "--workers", "1"]
    assert main([*command, str(tmp_path / "i.txt")]) == 3
    captured = capsys.readouterr()
    assert "no run of either version reported a value up to 30 seconds" in captured.err
    assert not captured.out


@pytest.mark.filterwarnings("ignore:.*no licence")
def test_an_old_version_that_always_fails_is_compared_with_nothing(tmp_path):
    """The new version must not pass because the old one could not be run."""

    def old(_job):
        raise RuntimeError("no licence")

    def new(job):
        yield 1, job.rng.random()

    options = {"direction": "minimize", "executor": 1, "store": tmp_path / "gate.db"}
    for _ in range(2):  # and if it is resumed
        with pytest.raises(
            pb.errors.SolverError, match="no run of the old version reported a value.*no l"
        ):
            pb.gate(old, new, range(100), [1], **options)


def test_a_command_whose_old_version_always_fails_does_not_pass(tmp_path, capsys):
    (tmp_path / "i.txt").write_text("")
    old, new = (f"{sys.executable} -c '{code}'" for code in ("raise SystemExit(9)", "print(1)"))
    command = ["gate", "--old", old, "--new", new, "--pattern", "(?P<value>.)", "--budgets", "30"]
    command += ["--direction", "minimize", "--max-runs", "16", "--workers", "1", "--reuse", "8"]
    assert main([*command, str(tmp_path / "i.txt")]) == 3
    assert "no run of the old version reported a value" in capsys.readouterr().err


def test_a_gate_whose_old_version_was_removed_is_undecided(tmp_path):
    def old(job):
        yield 1, job.rng.random()

    options = {"direction": "minimize", "executor": 1, "store": tmp_path / "gate.db"}
    pb.gate(old, old, range(100), [1], budget=pb.Budget(runs=16), **options)
    with open_store(options["store"]) as store:
        store.append([Removed("old", "by hand")])
    for _ in range(2):
        answer = pb.gate(old, old, range(100), [1], **options)
        assert (answer.answer, answer.exit_code) == ("undecided", 2)
        said = "The question is not settled (baseline removed, so nothing is compared)."
        assert answer.guarantee == said


def test_ties_without_a_value_are_named():
    def late(job):
        if job.instance % 4 == 0:
            yield 1, 0.0
        yield 2, 0.0

    options = {"direction": "minimize", "executor": 1, "budget": pb.Budget(runs=32)}
    answer = pb.gate(late, late, range(100), [1, 2], **options)
    first, second = answer.times
    assert 2 * first.ties_without_value > first.ties == answer.instances
    assert second.ties_without_value == 0
    said = f"neither version had reported a value: at time 1 in {first.ties_without_value:g} of "
    for text in (str(answer), answer.markdown(), *answer.to_dict()["remarks"][-1:]):
        assert text.count(said) == 1
    assert answer.to_dict()["times"][0]["ties_without_value"] == first.ties_without_value


@pytest.mark.filterwarnings("ignore:.*no licence")
def test_failed_runs_are_counted_with_their_reason():
    def old(job):
        yield 1, job.rng.random()

    def crashing(job):
        if job.instance % 4:
            raise RuntimeError("no licence\nfor `x`")
        raise ValueError

    answer = pb.gate(old, crashing, range(100), [1], direction="minimize", executor=1)
    assert answer.answer == "fail"
    n = answer.instances
    said = f"{n} of {n} runs of the new version failed: `RuntimeError: no licence for 'x'"
    assert said in str(answer)
    assert said in answer.markdown()
    assert "old version failed" not in str(answer)
    runs = json.loads(json.dumps(answer.to_dict()))["runs"]
    assert (runs["made"], runs["failed"]) == ({"old": n, "new": n}, {"new": n})
    assert "no licence" in runs["why"]["new"]


def test_the_cost_by_a_reported_clock_says_what_it_counts(tmp_path, capsys):
    def old(job):
        job.report(0.0, time=9)

    store = tmp_path / "gate.db"
    options = {"direction": "minimize", "executor": 1, "clock": "reported", "store": store}
    answer = pb.gate(old, old, range(9), [9], budget=pb.Budget(runs=4), **options)
    assert "2 instances, 4 runs, 36 (reported time)\n" in str(answer)
    assert "2 instances, 4 runs, 36 (reported time).\n" in answer.markdown()
    assert main(["status", str(store)]) == 0
    assert "4 runs, 36 (reported time)\n" in capsys.readouterr().out


def test_the_counts_of_a_gate_are_of_the_rankings_that_decide():
    """Once, ties within a tolerance were wins and losses in the table beside the answer."""

    def old(job):
        yield 1, 1.0 + 0.001 * job.rng.random()

    def new(job):
        yield 1, 1.0005 + 0.001 * job.rng.random()

    question = pb.NoWorse("old", fit={"rel_tol": 0.01})
    found = pb.gate(old, new, range(120), [1], direction="minimize", executor=1, question=question)
    assert found.verdict.kind == "passed"
    assert [(row.wins, row.losses) for row in found.times] == [(0, 0)]
