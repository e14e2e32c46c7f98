"""A course for races: solvers whose runs follow from their jobs, and a fit that takes no time."""

from dataclasses import dataclass, field, replace
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
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.racing.questions.question import Question
from polarbear.racing.race import Race


@dataclass(frozen=True)
class PerLook(PaperParetoSet):
    """Decides by the posterior at each look, but plans as e-values do: few runs settle a race.

    A pair is settled as long as the present posterior is certain.
    """

    resolution: Resolution | None = field(default="at_par", kw_only=True)

    rates_eliminated: ClassVar[bool] = False
    focuses: ClassVar[bool] = True
    fit_options = {}  # noqa: RUF012

    def decide(self, view, rankings, posterior):
        pairs = all_pairs(view.members)
        every = dict.fromkeys(pairs, self.asked_times(len(view.times)))
        return super().decide(replace(view, open=every), rankings, posterior)

    def _choose_batch(self, view, open_pairs):
        return view.budget.next_batch(view.batch, len(view.open) - len(open_pairs), len(view.open))

    def _find_claims(self, view, posterior):
        claims, _ = super()._find_claims(view, posterior)
        return claims, claims.open_at


# One class, although doctests import this module under a second name.
PerLook = stored.BY_NAME.setdefault("PerLook", PerLook)


class ShortFirst(PerLook):
    """Asks for the first open time of each pair only, as long as there are unused instances."""

    def decide(self, view, rankings, posterior):
        decision = super().decide(view, rankings, posterior)
        if not view.n_unused:
            return decision
        short = tuple(one._replace(times=one.times & -one.times) for one in decision.open)
        return replace(decision, open=short)


ShortFirst = stored.BY_NAME.setdefault("ShortFirst", ShortFirst)


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
    question = more.pop("question", PerLook(certainty=0.9))
    if isinstance(question, Question):
        question = replace(question, fit=fit)
    more = {"budget": Budget(batch=(2, 8), runs=400), **more}
    return Race(names, TIMES, direction="maximize", question=question, **more)


def fitted(question=None, fit=quick_fit):
    """A question whose posteriors take no time."""
    return replace(ParetoSet() if question is None else question, fit=fit)


def restore(events, fit=quick_fit, **more):
    """The race of some events, with a fit that these do not hold."""
    events = list(events)
    return Race.from_events(events, question=replace(events[0].question, fit=fit), **more)


def asked_by(store, fit=quick_fit):
    """The question of the race in a store, with a fit that this does not hold."""
    return replace(store.started().question, fit=fit)


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
    assert state.members.racing.isdisjoint(state.members.eliminated)
    assert state.members.racing.isdisjoint(state.members.removed)
    assert state.members.eliminated.keys().isdisjoint(state.members.removed)
    everybody = state.members.racing | set(state.members.removed) | set(state.members.eliminated)
    for found in state.members.eliminated.values():
        assert found.rival in everybody
        assert found.rival != found.algorithm
        if isinstance(race.question, PaperParetoSet):
            assert found.probability >= race.question.certainty
    for (a, b), times in state.pairs.open.items():
        assert {a, b} <= state.members.racing
        assert 0 < times < 1 << len(state.setup.times)
    for key, job in state.progress.wanted.items():
        assert key == job.key
        assert key not in state.ledger.arrived
        assert key.algorithm in state.members.racing
    again = sum(key in state.ledger.arrived for key in state.ledger.extends)
    ledger = race.state.ledger
    replaced = {*ledger.superseded} & {*ledger.arrived} - {*ledger.withdrawn}
    assert race.n_runs - again - len(replaced) <= len(race.runs) <= race.n_runs
    spent = race.state.ledger.requested
    assert spent.runs >= len(state.ledger.ever_requested)
    assert spent.time >= 0
    for round_, tickets in state.progress.pending.items():
        assert round_ >= state.progress.current
        assert all(
            (key in state.progress.wanted) == (run.status is None) for key, run in tickets.items()
        )
    assert set(state.progress.wanted) <= {
        key for tickets in state.progress.pending.values() for key in tickets
    }
    if race.budget.runs is not None:
        assert spent.runs <= race.budget.runs
    if race.budget.time is not None:
        assert spent.time <= race.budget.time + 1e-9
    for name in everybody:
        assert race.verdict(name).algorithm == name
