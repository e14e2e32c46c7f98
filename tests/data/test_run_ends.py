"""How runs ended: what the data decide, what stays open, and what failed runs did."""

import numpy as np
import pytest

import polarbear as pb
from optimisers import BUDGET, OPTIMISERS, evaluate
from polarbear import DataError, Run, Runs, Status
from polarbear.cli.main import main
from polarbear.errors import DataWarning
from polarbear.reporting.content import make_document


def ends_of(*until_by_algorithm):
    """The statuses of runs that say nothing, by algorithm; one run for each instance."""
    runs = [
        Run(f"a{k}", str(i), [1] if until else [], [2.0] if until else [], until)
        for k, ends in enumerate(until_by_algorithm)
        for i, until in enumerate(ends)
    ]
    found = Runs.from_records(runs, direction="minimize")
    return [
        "".join(str(run.status)[0] for run in found if run.algorithm == name)
        for name in found.algorithms
    ]


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        pytest.param([[9, 9, 9], [9, 9, 9]], ["ccc", "ccc"], id="all end together"),
        pytest.param([[100, 100, 100], [98, 99, 97]], ["ccc", "ccc"], id="nearly together"),
        pytest.param([[9, 9, 9], [2, 3, 5]], ["ccc", "uuu"], id="one stops by itself"),
        pytest.param([[9, 9, 9], [2, 9, 5]], ["ccc", "ucu"], id="sometimes"),
        pytest.param([[9, 9, 9], [4, 4, 4]], ["ccc", "ccc"], id="a smaller budget"),
        pytest.param([[9, 90, 900], [9, 90, 900]], ["ccc", "ccc"], id="budgets by instance"),
        pytest.param([[9, 90, 900], [3, 30, 300]], ["uuc", "ccc"], id="shares by instance"),
        pytest.param([[2, 7, 5], [4, 3, 9]], ["uuu", "uuc"], id="all stop by themselves"),
        pytest.param([[9, 9, 9], [0, 9, 9]], ["ccc", "ccc"], id="not observed"),
    ],
)
def test_ends_that_the_data_explain_are_cut_and_others_stay_unstated(until, expected):
    assert ends_of(*until) == expected


def test_parts_are_decided_together_and_a_selection_keeps_the_decision():
    short = [Run("a", str(i), [1], [2.0], until) for i, until in enumerate((2, 3, 5))]
    long = [Run("b", str(i), [1], [2.0], 9) for i in range(3)]
    parts = [Runs.from_records([run], direction="minimize") for run in (*short, *long)]
    assert all(part[0].status == Status.CUT for part in parts)  # nothing to compare with
    runs = Runs.concat(parts)
    assert runs.count_statuses() == {"unstated": 3, "cut": 3}
    alone = runs.filter(algorithms=["a"])
    assert alone.count_statuses() == {"unstated": 3}
    assert np.isfinite(alone.at([4])).all()  # once, the longest of those left was cut
    assert Runs.from_frame(runs.columns(), direction="minimize") == runs
    assert alone.read_as("cut").count_statuses() == {"cut": 3}
    with pytest.raises(DataError, match="ended='stopped': expected 'cut' or 'finished'"):
        runs.read_as("stopped")


def test_a_stated_end_is_never_changed():
    runs = [Run("a", "1", [1], [2.0], 3, status=Status.CUT), Run("b", "1", [1], [2.0], 9)]
    table = Runs.from_records(runs, direction="minimize")
    assert table.read_as("finished").count_statuses() == {"cut": 1, "finished": 1}


N_INSTANCES = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One CSV file per run of real optimisers, of which two stop when they have converged."""
    folder = tmp_path_factory.mktemp("runs")
    for optimiser in OPTIMISERS:
        (folder / optimiser).mkdir()
        for instance in range(N_INSTANCES):
            lines = [f"{n},{v}" for n, v in enumerate(evaluate(optimiser, instance), 1)]
            path = folder / optimiser / f"f{instance}.csv"
            path.write_text("\n".join(["evaluations,value", *lines]))
    return folder


NAMES = {"names": "{algorithm}/{instance}.csv", "time": "evaluations", "direction": "minimize"}
TIMES = pb.grid.log(20, BUDGET, 12, whole=True)


def test_if_the_answer_hangs_on_how_runs_ended_that_is_said_first(folder, tmp_path):
    runs = pb.read(folder, **NAMES)
    whole = {"LBFGSB", "DE", "RandomSearch"}
    assert {run.algorithm for run in runs if run.status == Status.UNSTATED} == {"CMA", "NelderMead"}
    assert all(run.status == Status.CUT for run in runs if run.algorithm in whole)
    posterior = pb.fit(runs, times=TIMES)
    with pytest.warns(DataWarning, match="nothing is known of NelderMead"):
        cut = pb.fit(pb.read(folder, ended="cut", **NAMES), times=TIMES)
    finished = pb.fit(pb.read(folder, ended="finished", **NAMES), times=TIMES)
    readings = {"finished": finished, "cut": cut}
    statuses = {
        ended: {one.algorithm: one.stance for one in reading.verdicts()}
        for ended, reading in readings.items()
    }
    assert statuses["finished"] != statuses["cut"]
    assert {one.algorithm: one.stance for one in posterior.verdicts()} == statuses["finished"]
    first = str(posterior.verdict()).splitlines()[0]
    assert first.startswith("The answer hangs on how runs ended.")
    some = f"{N_INSTANCES} of {N_INSTANCES} runs of NelderMead end before the others"
    assert f"{some}, and nothing says why" in first
    for name in runs.algorithms:
        differs = statuses["finished"][name] != statuses["cut"][name]
        assert (f" {name} is" in first) == differs
    best = {one.algorithms[one.prob_best()[-1].argmax()] for one in readings.values()}
    assert ("the most likely best at the end is" in first) == (len(best) == 2)
    assert "hangs" not in str(readings["finished"].verdict()) + str(readings["cut"].verdict())
    with pytest.warns(DataWarning, match="nothing says why"):
        pb.assess(runs, times=TIMES)
    posterior.save(tmp_path / "posterior.zip")
    assert pb.Posterior.load(tmp_path / "posterior.zip") == posterior
    document = make_document(pb.Posterior.load(tmp_path / "posterior.zip"))
    assert document["verdict"]["cautions"][0] == first
    assert len(document["verdict"]["cautions"]) == 1
    assert "they are taken to have finished by themselves" in pb.papers.describe_methods(posterior)
    chosen = {x: pb.select(p, pb.preferences.final()).choice for x, p in readings.items()}
    selection = pb.select(posterior, pb.preferences.final())
    assert bool(selection.cautions) == (str(chosen["finished"]) != str(chosen["cut"]))


def test_one_word_says_it_on_the_command_line_and_in_frames(folder, capsys):
    names = ["--names", NAMES["names"], "--time", "evaluations", "--direction", "minimize"]
    times = ["--times", ",".join(f"{time:g}" for time in TIMES)]
    assert main(["analyse", str(folder), *names, *times]) == 0
    text = capsys.readouterr().out
    assert text.index("hangs on how runs ended") < text.index("algorithms stay")
    assert "--ended on the command line" in text
    assert main(["analyse", str(folder), *names, *times, "--json", "--ended", "finished"]) == 0
    assert '"cautions": []' in capsys.readouterr().out
    table = pb.read(folder, **NAMES).columns()
    del table["status"]
    with pytest.warns(DataWarning, match="nothing is known of NelderMead"):
        frame = pb.fit(Runs.from_frame(table, direction="minimize", ended="cut"), times=TIMES)
    assert frame.if_cut is None
    assert frame.ends[0].counts == {"cut": N_INSTANCES}


def test_where_both_readings_agree_a_line_says_so():
    runs = [Run("good", str(i), [1], [1.0 + i], 100) for i in range(40)]
    runs += [Run("bad", str(i), [1], [2.0 + i], 50 + i) for i in range(40)]
    posterior = pb.fit(Runs.from_records(runs, direction="minimize"), times=[10, 60])
    first = str(posterior.verdict()).splitlines()[0]
    assert first.endswith("as cut, the verdict about every algorithm is the same.")


def crashing(n_failed):
    """Runs of an algorithm that leads until it crashes, before the end of its budget."""
    runs = [Run("steady", str(i), [1, 50], [9.0, 5.0], 100, 0, Status.CUT) for i in range(200)]
    for i in range(200):
        failed = i < n_failed
        time, value = ([1], [8.0]) if failed else ([1, 50], [8.0, 4.0])
        until, status = (20, Status.CRASHED) if failed else (100, Status.CUT)
        runs.append(Run("fast", str(i), time, value, until, 0, status))
    return Runs.from_records(runs, direction="minimize")


def test_failures_of_a_recommended_algorithm_are_said_first():
    posterior = pb.fit(crashing(77), times=[10, 100])
    first = str(posterior.verdict()).splitlines()[0]
    assert first == (
        "fast failed in 77 of 200 runs (77 crashed). A failed run keeps its best value: at the "
        "last time, its failed runs are ahead of 0 % of their rivals, its other runs of 100 %."
    )
    assert "Failed: 77 of 200 runs of fast (77 crashed)." in pb.papers.describe_methods(posterior)
    assert "323 cut, 77 crashed" in str(posterior)
    document = make_document(posterior)
    assert ("77 of 400 runs crashed", "bad") in document["facts"]
    assert document["rows"][document["algorithms"].index("fast")]["warning"] == first
    selection = pb.select(posterior, pb.preferences.at(10))
    assert selection.algorithms == ("fast",)
    assert selection.cautions == (first,)
    assert "caution: fast failed in 77" in str(selection)
    assert pb.select(posterior, among=["steady"]).cautions == ()


def test_few_failures_are_counted_without_a_warning():
    posterior = pb.fit(crashing(9), times=[10, 100])
    assert not posterior.verdict().cautions
    assert posterior.ends[0].counts == {"cut": 191, "crashed": 9}


def test_the_posterior_of_a_race_knows_how_its_runs_ended():
    race = pb.Race(["a", "b"], [1, 2], direction="minimize", instances=range(20))
    for job in race.ask():
        fails = job.algorithm == "a" and int(job.instance) % 2
        status = Status.CRASHED if fails else Status.CUT
        race.tell(job.run([1], [1.0 + (job.algorithm == "b")], status=status))
    race.ask()
    counts = race.posterior.ends[0].counts
    assert counts["crashed"] == sum(counts.values()) - counts["cut"] > 0


def test_runs_that_stand_in_for_missing_repetitions_are_counted_once():
    runs = [Run("a", "1", [1], [2.0], 9, k) for k in range(3)] + [Run("b", "1", [1], [3.0], 9)]
    ends = pb.rank(Runs.from_records(runs, direction="minimize"), [5]).count_ends()
    assert [one.n_runs for one in ends] == [3, 1]


def test_counts_follow_the_rankings():
    rankings = pb.rank(crashing(77), [10, 100])
    half = rankings.take(np.arange(77)).join(rankings.take(np.arange(77, 200)))
    assert half.count_ends() == rankings.count_ends()
    assert rankings.among(["fast"]).count_ends()[0].counts == {"cut": 123, "crashed": 77}
