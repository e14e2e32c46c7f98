"""A course for races: solvers whose runs follow from their jobs, and a fit that takes no time."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from polarbear.data.positions import UNKNOWN
from polarbear.data.run import Status
from polarbear.inference.dominance import Resolution
from polarbear.inference.posterior import Posterior
from polarbear.racing.budget import Budget
from polarbear.racing.decisions import all_pairs
from polarbear.racing.questions import stored
from polarbear.racing.questions.paper_pareto_set import PaperParetoSet
from polarbear.racing.race import Race


@dataclass(frozen=True)
class PerLook(PaperParetoSet):
    """Decides by the posterior at each look, but plans as e-values do: few runs settle a race.

    A pair is settled as long as the present posterior is certain.
    """

    resolution: Resolution = "at_par"

    rates_eliminated: ClassVar[bool] = False
    focuses: ClassVar[bool] = True
    fit_options: ClassVar[dict] = {}

    def decide(self, view, rankings, posterior):
        pairs = all_pairs(view.members)
        every = dict.fromkeys(pairs, self.asked_times(len(view.times)))
        return super().decide(replace(view, open=every), rankings, posterior)

    def _find_claims(self, view, posterior):
        claims, _ = super()._find_claims(view, posterior)
        return claims, claims.open_at


stored.BY_NAME["PerLook"] = PerLook


TIMES = (1.0, 2.0, 4.0)
SKILL = {
    "early": (2.0, 0.0, -2.0),
    "late": (-2.0, 0.0, 2.0),
    "good": (1.0, 1.0, 1.0),
    "twin": (1.0, 1.0, 1.0),
    "bad": (-1.5, -1.0, -1.5),
    "worst": (-4.0, -4.0, -4.0),
}


def quick_fit(rankings, *, seed):
    """Ratings from mean positions, with draws that narrow as instances come in."""
    n_times, n = len(rankings.times), len(rankings.algorithms)
    size = np.diff(rankings.offset)[
        np.repeat(np.arange(len(rankings.instance)), np.diff(rankings.offset))
    ]
    known = rankings.position != UNKNOWN
    score = np.where(known, 0.5 - (rankings.position + 0.5) / size, 0.0)
    seen = np.stack([np.bincount(rankings.algorithm, row, minlength=n) for row in known])
    total = np.stack([np.bincount(rankings.algorithm, row, minlength=n) for row in score])
    mean = 4 * total / (seen + 1)
    noise = np.random.default_rng(seed).standard_normal((80, n_times, n))
    draws = (mean + 1.5 * noise / np.sqrt(seen + 1)).astype(np.float32)
    weight = np.full((80, 1), 1 / 80, dtype=np.float32)
    return Posterior(rankings.algorithms, rankings.times, draws, weight)


def solve(job, fails=0.0):
    """The run of a job: chance comes from its seed alone."""
    rng = np.random.default_rng(job.seed)
    chance, values = rng.random(), rng.gumbel(size=len(TIMES)) + SKILL[job.algorithm]
    # A rising trend makes every time an improvement, and changes no ranking.
    values = values + 30 * np.arange(len(TIMES))
    until, status = job.horizon, Status.CUT
    if chance < fails:
        until, status = job.horizon * chance / fails, Status.CRASHED
    seen = np.asarray(TIMES) <= until
    return job.run(np.asarray(TIMES)[seen], values[seen], until=until, status=status)


def race_of(names=("early", "late", "good", "bad"), *, fit=quick_fit, **more):
    more = {"question": PerLook(certainty=0.9), "budget": Budget(batch=(2, 8), runs=400), **more}
    return Race(names, TIMES, direction="maximize", fit=fit, **more)


def drive(race, fails=0.0, order=None):
    """Run a race to its end, telling each round in some order."""
    while jobs := race.ask():
        for k in range(len(jobs)) if order is None else order.permutation(len(jobs)):
            race.tell(solve(jobs[k], fails))
    return race


def history(race):
    """What was asked and decided, without the order in which runs came in."""
    return [event for event in race.events if type(event).__name__ not in ("Told", "Imported")]


def check_invariants(race):
    """What is true of every race at every moment."""
    state = race._state
    assert state.racing.isdisjoint(state.eliminated)
    assert state.racing.isdisjoint(state.removed)
    assert state.eliminated.keys().isdisjoint(state.removed)
    everybody = state.racing | set(state.removed) | set(state.eliminated)
    for found in state.eliminated.values():
        assert found.by in everybody
        assert found.by != found.algorithm
        if isinstance(race.question, PaperParetoSet):
            assert found.probability >= race.question.certainty
    for (a, b), times in state.open.items():
        assert {a, b} <= state.racing
        assert 0 < times < 1 << len(state.times)
    for key, job in state.wanted.items():
        assert key == job.key
        assert key not in state.arrived
        assert key.algorithm in state.racing
    again = sum(key in state.arrived for key in state.extends)
    assert race.n_runs - again <= len(race.runs) <= race.n_runs
    spent = race.state.requested
    assert spent.runs >= len(state.ever_requested)
    assert spent.time >= 0
    for round_, tickets in state.pending_rounds.items():
        assert round_ >= state.current
        assert all((key in state.wanted) == (run.status is None) for key, run in tickets.items())
    assert set(state.wanted) <= {
        key for tickets in state.pending_rounds.values() for key in tickets
    }
    if race.budget.runs is not None:
        assert spent.runs <= race.budget.runs
    if race.budget.time is not None:
        assert spent.time <= race.budget.time + 1e-9
    for name in everybody:
        assert race.verdict(name).algorithm == name
