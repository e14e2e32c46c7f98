"""One truth: what a report says of a race agrees with the race's posterior, or it says why not."""

import numpy as np
import pytest

import polarbear as pb
from polarbear.reporting.algorithm_rows import describe_race_verdicts
from polarbear.reporting.content import make_document

TIMES = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
CLAIM = " By the posterior of the same runs alone, "
FIT = {"draws": 200}


def make_solver(seed):
    """Algorithms that lead, cross or tie, with luck that is new at each time or lasts."""
    rng = np.random.default_rng(seed)
    start, end = rng.normal(0, 1.0, (2, 3 + seed % 3))
    if seed % 4 == 0:
        start[1], end[1] = start[0], end[0]
    weight = np.linspace(0, 1, len(TIMES))[:, None]
    utilities, lasts = (1 - weight) * start + weight * end, seed % 2

    def solve(job):
        noise = np.random.default_rng(job.seed).gumbel(size=len(TIMES))
        noise = noise[0] if lasts else noise
        value = utilities[:, int(job.algorithm[1:])] + noise + 30 * np.arange(len(TIMES))
        seen = job.horizon >= TIMES
        return job.run(TIMES[seen], value[seen], until=job.horizon)

    return tuple(f"a{k}" for k in range(len(start))), solve


def find_side(verdict):
    """Whether a verdict says replaceable (-1), worth running (1), or leaves it open (0)."""
    if verdict.kind == "undecided":
        return (verdict.probability > 0.8) - (verdict.probability < 0.2)
    return {"dominated": -1, "member": 1, "equivalent": 0}[verdict.kind]


def check(race):
    """Compare the sentences about a race with the claims of its posterior; return how many."""
    posterior, question = race.posterior, race.question
    if posterior is None:  # a single algorithm is left
        return 0, 0
    found = question.read_posterior(posterior)
    claims = {one.algorithm: one for one in found.verdicts}
    # The posterior makes the same claims: its draws, stretches and margins are those of the rule.
    again = posterior.verdicts(question.certainty, margin=question.margin, width=question.width)
    assert again == found.verdicts
    said = {one.algorithm: one.text for one in describe_race_verdicts(race, found)}
    compared = [one for one in race.verdicts() if one.algorithm in claims]
    for ours in compared:
        text, theirs = said[ours.algorithm], claims[ours.algorithm]
        assert text.startswith(str(ours))
        contradicts = find_side(ours) * find_side(theirs) < 0
        knows_more = theirs.kind == "dominated" and ours.kind == "undecided" and not find_side(ours)
        if contradicts or knows_more:
            assert f"{CLAIM}{ours.algorithm} is " in text
            assert text.count(theirs.rival or "most likely the best")
        if ours.kind == theirs.kind and ours.kind != "undecided":
            assert CLAIM not in text
    return len(compared), sum(CLAIM in text for text in said.values())


def check_races(seeds):
    """Run races, and compare after every round; return what was compared and what differed."""
    totals = np.zeros(2, dtype=int)
    for seed in seeds:
        names, solve = make_solver(seed)
        question = pb.ParetoSet(fit=FIT)
        options = {"direction": "maximize", "question": question, "seed": seed}
        instances = [f"i{k}" for k in range(40)]
        race = pb.Race(
            names, TIMES, instances=instances, budget=pb.Budget(batch=(8, 16)), **options
        )
        rounds = 0
        while jobs := race.ask():
            if race.rounds > rounds:
                rounds = race.rounds
                totals += check(race)
            for job in jobs:
                race.tell(solve(job))
        totals += check(race)
        content = make_document(race)
        rows = dict(zip(content["algorithms"], content["rows"], strict=True))
        found = question.read_posterior(race.posterior) if race.posterior else None
        for one in describe_race_verdicts(race, found):
            assert rows[one.algorithm]["text"] == one.text
            worth = race.verdict(one.algorithm).prob_worth
            assert rows[one.algorithm]["probability"] == pytest.approx(worth)
    return totals


@pytest.mark.slow
def test_a_report_and_the_posterior_agree_after_every_round():
    compared, differed = check_races(range(20))
    assert compared > 200
    assert differed < 0.2 * compared  # else the two would tell different stories


@pytest.mark.long
def test_200_reports_and_their_posteriors_agree():
    compared, differed = check_races(range(20, 220))
    assert compared > 2000
    assert differed < 0.2 * compared


def test_a_posterior_that_contradicts_the_duels_is_quoted():
    """The winner of a race is replaceable by a posterior that someone made of something else."""
    race = pb.replay(pb.simulation.simulate_runs(np.array([[2.0, 0.0, -1.0]] * 3), 40))
    winner = "a1"
    assert race.verdict(winner).kind == "member"
    draws = np.tile(np.float32([-3.0, 3.0]), (50, len(race.times), 1))
    weight = np.full((50, 1), 0.02, dtype=np.float32)
    other = pb.Posterior((winner, "a2"), np.array(race.times), draws, weight)
    found = race.question.read_posterior(other)
    said = {one.algorithm: one.text for one in describe_race_verdicts(race, found)}
    assert said[winner].endswith(f"{CLAIM}{winner} is replaceable by a2 (P > 0.999).")
    assert f"{CLAIM}a2 is worth running (P > 0.999): most likely the best " in said["a2"]
    assert CLAIM not in said["a3"]
