"""Part (b): how many instances does one pair at one time take, against the limit of any rule?

Exactly, by dynamic programming over the number of wins, for looks at every instance and at the
default batches; and with the batches that the race plans, which a forecast shortens.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from error_control.decisions import EPSILON, Floats, Ints, default_looks, prob_ahead, prob_alike
from error_control.errors import lead_of
from polarbear.racing.allocation import find_cheapest_routes
from racing.course import Method, course, drive
from scipy.special import digamma, polygamma
from tools.records import Records, seeded

import polarbear as pb
from polarbear.inference.dominance import equivalence_margin
from polarbear.inference.e_values import log_lead, log_par, multiplicity
from polarbear.racing.forecast import InstancesNeeded, LeadDraws, RequiredZ, TimeRanges

INSTANCES, PAIRS, RACES = 10_000, 4000, 100
CERTAINTY = (0.95, 0.99)
ONE_TIME = TimeRanges(np.zeros(1, dtype=np.intp), np.ones(1), np.ones(1))
WINS = (0.5, 0.52, 0.55, 0.6, 0.7)

LIMIT = {
    0.95: dict(zip(WINS, (877, 852, 529, 132, 32), strict=True)),
    0.99: dict(zip(WINS, (1281, 1627, 899, 224, 55), strict=True)),
}
"""The least mean number of instances of any rule with these errors, for epsilon = 0.05.

Wald's sequential test for a win probability of at least 1/2 + epsilon, and below that backward
induction over rules with three answers; up to 10,000 instances. Computed for the design of the
rule (November 2026) and taken from there.
"""

TARGET = {
    "every instance": dict.fromkeys(WINS, 1.35),
    "planned batches": dict(zip(WINS, (1.3, 1.3, 1.3, 1.45, 1.8), strict=True)),
}
"""At certainty .99: mean instances may be this many times the limit."""

FACTORS = {
    "per_member": multiplicity(1),
    "K = 2 / (1 - c)": 2.0,
    "K = 1 / (1 - c)": 1.0,
}
"""K (1 - certainty) for the elimination of one by the other, in a race of two.

The package keeps a tenth of the error for newcomers (10/9); 2 would keep one half, and 1 nothing.
"""

OPEN, WON, LOST, CLOSED = range(4)


def end_of(wins: Floats, losses: Floats, rule: str, certainty: float) -> Ints:
    """Return how a race of two at one time ends after these results: OPEN, or one of the others.

    These are the thresholds of the package; a test compares them with ``derive_verdicts``.
    """
    if rule == "per_look":
        won, lost = (prob_ahead(*each) >= certainty for each in ((wins, losses), (losses, wins)))
        closed = prob_alike(wins, losses) >= certainty
    else:
        level = -np.log1p(-certainty)
        log_k = level + np.log(FACTORS[rule])
        won = log_lead(wins, losses, EPSILON) >= log_k
        lost = log_lead(losses, wins, EPSILON) >= log_k
        one, other = (
            log_par(*each, EPSILON) for each in ((wins, 0 * wins, losses), (losses, 0 * wins, wins))
        )
        closed = (one >= level) & (other >= level)
    return np.where(won, WON, np.where(lost, LOST, np.where(closed, CLOSED, OPEN)))


class Ended(NamedTuple):
    """Of races with several win probabilities: mean instances, and how they ended."""

    instances: Floats  # (P,)
    share: Floats  # (P, 4)
    wrong: Floats  # (looks, P): won or lost until a look


def race_exactly(
    rule: str, certainty: float, looks: Iterable[int], wins: Iterable[float], closing: bool = True
) -> Ended:
    """Return how races of one pair end, by dynamic programming over the number of wins."""
    p = np.array(list(wins))[:, None]
    mass, low, seen = np.ones((len(p), 1)), 0, 0
    instances, share, wrong = np.zeros(len(p)), np.zeros((len(p), 4)), []
    for look in looks:
        for _ in range(look - seen):
            wider = np.zeros((len(p), mass.shape[1] + 1))
            wider[:, :-1] = mass * (1 - p)
            wider[:, 1:] += mass * p
            mass = wider
        seen = look
        won = low + np.arange(mass.shape[1], dtype=float)
        end = end_of(won, seen - won, rule, certainty)
        if not closing:
            end = np.where(end == CLOSED, OPEN, end)
        for kind in (WON, LOST, CLOSED):
            stopped = mass[:, end == kind].sum(axis=1)
            share[:, kind] += stopped
            instances += seen * stopped
        mass = np.where(end == OPEN, mass, 0.0)
        alive = np.flatnonzero(mass.max(axis=0) > 1e-15)
        wrong.append(share[:, WON] + share[:, LOST])
        if not len(alive):
            mass = np.zeros((len(p), 1))
            break
        mass, low = mass[:, alive[0] : alive[-1] + 1], low + int(alive[0])
    share[:, OPEN] = mass.sum(axis=1)
    return Ended(instances + seen * share[:, OPEN], share, np.array(wrong))


def exact(records: Records, limit: int = INSTANCES) -> None:
    """Keep the exact cost of both rules, looking at every instance and at the default batches."""
    schedules = {"every instance": np.arange(1, limit + 1), "default batches": default_looks(limit)}
    for rule in (*FACTORS, "per_look"):
        for name, looks in schedules.items():
            for certainty in CERTAINTY:
                if (rule, name, certainty, WINS[0]) not in records:
                    ended = race_exactly(rule, certainty, looks.tolist(), WINS)
                    _keep(records, rule, name, certainty, ended.instances, ended.share)


def _keep(
    records: Records, rule: str, looks: str, certainty: float, instances: Floats, share: Floats
) -> None:
    for k, win in enumerate(WINS):
        ends = [round(float(each), 5) for each in share[k]]
        row = {"rule": rule, "looks": looks, "certainty": certainty, "win": win}
        row |= {"instances": round(float(instances[k]), 1)}
        records.add(row | dict(zip(("open", "won", "lost", "closed"), ends, strict=True)))


def planned(records: Records, pairs: int = PAIRS, limit: int = INSTANCES) -> None:
    """Keep the cost of the default rule with the batches that a race plans.

    The forecast and the batch are the package's. The fit has a stand-in: the mean and the standard
    deviation of the log-odds under the Beta posterior with a uniform prior.
    """
    for rule in FACTORS:
        for certainty in CERTAINTY:
            if (rule, "planned batches", certainty, WINS[0]) not in records:
                ended = [_planned(rule, certainty, win, pairs, limit) for win in WINS]
                instances = np.array([seen.mean() for seen, _ in ended])
                share = np.array([np.bincount(end, minlength=4) / pairs for _, end in ended])
                _keep(records, rule, "planned batches", certainty, instances, share)


def _planned(rule: str, certainty: float, win: float, pairs: int, limit: int) -> tuple[Ints, Ints]:
    """Return instances and ends of simulated pairs."""
    budget, rng = pb.Budget(), seeded("planned", win)
    least, _ = budget.batch
    level = -np.log1p(-certainty)
    once, over = (float(np.sqrt(2 * (1 + k))) for k in (level, level + np.log(FACTORS[rule])))
    required = RequiredZ(over, over, once, equivalence_margin(EPSILON), one_sided=True)
    wins, seen, end = np.zeros((3, pairs), dtype=int)
    batch = np.full(pairs, least)
    while len(at := np.flatnonzero((end == OPEN) & (seen < limit))):
        step = np.minimum(batch[at], limit - seen[at])
        wins[at] += rng.binomial(step, win)
        seen[at] += step
        won, lost = wins[at].astype(float), (seen[at] - wins[at]).astype(float)
        end[at] = end_of(won, lost, rule, certainty)
        mean = (digamma(won + 1) - digamma(lost + 1))[None]
        spread = np.sqrt(polygamma(1, won + 1) + polygamma(1, lost + 1))[None]
        pair = np.zeros(len(at), dtype=np.intp)
        leads = LeadDraws(pair, pair + 1, mean[None], spread, seen[at][None].astype(float))
        needs = InstancesNeeded.from_leads(mean, leads, required)
        need, _ = find_cheapest_routes(
            needs, limit - leads.n_instances + 1, leads.n_instances, ONE_TIME, "at_par"
        )
        largest = [budget.batch_after(count) for count in seen[at].tolist()]
        batch[at] = np.clip(np.ceil(need), least, largest).astype(int)
    return seen, end


def curves(records: Records, limit: int = INSTANCES) -> None:
    """Keep the share of tied pairs that were called different until each look."""
    looks = default_looks(limit).tolist()
    for rule in ("per_member", "per_look"):
        for certainty in CERTAINTY:
            if (rule, certainty) not in records:
                row: dict[str, Any] = {"rule": rule, "certainty": certainty, "instances": looks}
                for name, closing in (("wrong", True), ("wrong_without_closing", False)):
                    wrong = race_exactly(rule, certainty, looks, [0.5], closing).wrong[:, 0]
                    wrong = np.pad(wrong, (0, len(looks) - len(wrong)), mode="edge")
                    row[name] = [round(float(each), 5) for each in wrong]
                records.add(row)


def real(records: Records, races: int = RACES, limit: int = INSTANCES) -> None:
    """Keep races of two by ``pb.Race`` with the real fit, at certainty .99."""
    certainty = CERTAINTY[-1]
    for number in range(races):
        for win in reversed(WINS):
            if (certainty, win, number) not in records:
                rng = seeded("pairs", win, number)
                on = course(np.array([[lead_of(win), 0.0]]), limit, rng, 0.0)
                race, *_ = drive(on, Method(pb.ParetoSet(certainty=certainty)), number)
                row = {"certainty": certainty, "win": win, "race": number}
                row |= {"instances": len(race.runs.instances), "ended": race.ended}
                records.add(row | {"eliminated": sorted(race.eliminated)})
