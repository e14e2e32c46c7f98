"""Part (a): how often is a decision wrong, if a race looks after every batch?

Runs have Gumbel noise, so that win probabilities are logistic, with a Gaussian copula over times of
correlation exp(-gap / L): L = 0 is new luck at each time, L = inf is one draw for the whole run.
All algorithms run on all instances, and a race never stops by itself, which is the worst case.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from error_control.decisions import (
    EPSILON,
    RULES,
    Bools,
    Decision,
    Floats,
    Ints,
    PerLook,
    PerMember,
    default_looks,
)
from tools.records import Records, seeded

from polarbear.inference.e_values import multiplicity
from polarbear.simulation import draw_persistent_noise

INSTANCES, RACES = 1024, 2000
CERTAINTY = (0.95, 0.99)
PERSISTENCE = (0.0, 0.5, np.inf)
AT_ONCE = 4_000_000
"""Noise values that are held in memory."""

NEWCOMERS = 50


@dataclass(frozen=True)
class Setting:
    """A truth (T, n), the members that may be lost, and the pairs about which claims are false."""

    name: str
    truth: Floats
    at_risk: tuple[int, ...]
    never_leads: tuple[tuple[int, int], ...] = ()
    never_at_par: bool = False


def lead_of(win: float) -> float:
    """Return the difference of utilities with which the first of two wins that often."""
    return float(np.log(win / (1 - win)))


def tied_once(n_times: int) -> Setting:
    """The first wins with probability .8, but at one time, where the two are tied."""
    truth = np.zeros((n_times, 2))
    truth[:, 0] = lead_of(0.8)
    truth[n_times // 2, 0] = 0.0
    both = n_times == 1
    never = ((0, 1), (1, 0)) if both else ((1, 0),)
    return Setting("tied at one time", truth, (0, 1) if both else (1,), never)


def tied(n: int, n_times: int) -> Setting:
    """All are tied at all times."""
    pairs = tuple((a, b) for a in range(n) for b in range(n) if a != b)
    return Setting("all tied", np.zeros((n_times, n)), tuple(range(n)), pairs)


def behind_by_epsilon(n_times: int) -> Setting:
    """The first is ahead by exactly epsilon at every time: the second is at par nowhere."""
    truth = np.zeros((n_times, 2))
    truth[:, 0] = lead_of(0.5 + EPSILON)
    return Setting("behind by epsilon", truth, (0,), ((1, 0),), never_at_par=True)


def clones(n_times: int) -> Setting:
    """Two copies, one that crosses them, and two that both copies dominate."""
    along = np.linspace(-1.0, 1.0, n_times)
    level = np.ones(n_times)
    truth = np.stack([level, level, 1 + along, 0.3 * level, 0 * level], axis=1)
    return Setting("clones", truth, (0, 1), ((0, 1), (1, 0)))


def groups() -> Iterator[tuple[float, list[Setting]]]:
    """Yield settings that can share their noise, with its persistence."""
    yield np.inf, [tied_once(1), behind_by_epsilon(1)]
    yield np.inf, [tied(5, 1)]
    yield np.inf, [tied(20, 1)]
    yield np.inf, [clones(10)]
    for persistence in PERSISTENCE:
        for n_times in (10, 50):
            yield (
                persistence,
                [tied_once(n_times), tied(2, n_times), behind_by_epsilon(n_times)],
            )


def count_wins(truth: Floats, noise: Floats, looks: Ints) -> Ints:
    """Return the wins of row against column (T, R, looks, n, n) from noise (T, R, instances, n).

    Noise of one time serves all times.
    """
    n_times, n = truth.shape
    start = np.concatenate([[0], looks[:-1]])
    wins: Any = np.zeros((n_times, noise.shape[1], len(looks), n, n), dtype=np.int16)
    for t in range(n_times):
        value = np.moveaxis(noise[min(t, len(noise) - 1)] + truth[t], -1, 0).copy()
        for a in range(n):
            for b in range(a + 1, n):
                won = value[a] > value[b]
                batch = np.add.reduceat(won, start, axis=-1, dtype=np.int16)
                wins[t, :, :, a, b] = np.cumsum(batch, axis=-1)
                wins[t, :, :, b, a] = looks - wins[t, :, :, a, b]
    return wins


def measure(persistence: float, settings: list[Setting], races: int, records: Records) -> None:
    """Race each setting, all on the same noise, and keep one row for each rule and certainty."""
    n_times, n = settings[0].truth.shape
    keys = [
        (one.name, n, n_times, f"{persistence:g}", rule.name, certainty, races)
        for one in settings
        for rule in RULES
        for certainty in CERTAINTY
    ]
    if all(key in records for key in keys):
        return
    looks = default_looks(INSTANCES)
    rules = [rule.at(looks, certainty) for rule in RULES for certainty in CERTAINTY]
    rng = seeded("errors", n, n_times, persistence)
    times = np.linspace(0, 1, n_times) if persistence < np.inf else np.zeros(1)
    tallies: list[list[list[Floats]]] = [[[] for _ in rules] for _ in settings]
    step = max(1, AT_ONCE // (n_times * n * INSTANCES))
    for first in range(0, races, step):
        size = (min(step, races - first), INSTANCES, n)
        noise = draw_persistent_noise(times, size, persistence, rng)
        for setting, of_setting in zip(settings, tallies, strict=True):
            wins = count_wins(setting.truth, noise, looks)
            for rule, tally in zip(rules, of_setting, strict=True):
                tally.append(_judge(setting, rule.decide(wins, setting.never_at_par)))
    for setting, of_setting in zip(settings, tallies, strict=True):
        for rule, tally in zip(rules, of_setting, strict=True):
            key = (setting.name, n, n_times, f"{persistence:g}", rule.name, rule.certainty, races)
            if key not in records:
                records.add({**dict(zip(records.key, key, strict=True)), **_summarise(tally)})


def _judge(setting: Setting, decision: Decision) -> Floats:
    """Return shares of each race (R, 4): members lost, any lost, false leads, false closing."""
    lost = decision.eliminated[:, setting.at_risk]
    rows = [lost.mean(axis=1), lost.any(axis=1)]
    pairs = np.array(setting.never_leads, dtype=int).reshape(-1, 2)
    rows.append(_mean(decision.leads[:, pairs[:, 0], pairs[:, 1]]))
    closed = decision.closed[:, 0, 1]
    rows.append(closed.astype(float) if setting.never_at_par else np.full(len(closed), np.nan))
    return np.stack(rows, axis=1)


def _mean(claims: Bools) -> Floats:
    return claims.mean(axis=1) if claims.shape[1] else np.full(len(claims), np.nan)


NAMES = ("lost", "any_lost", "false_leads", "false_par")


def _summarise(tally: list[Floats]) -> dict[str, Any]:
    """Return means and standard errors between races; shares that do not apply are left out."""
    shares = np.concatenate(tally)
    row: dict[str, Any] = {}
    for name, values in zip(NAMES, shares.T, strict=True):
        if not np.isnan(values).any():
            row[name] = round(float(values.mean()), 5)
            row[f"{name}_error"] = round(float(values.std() / np.sqrt(len(values))), 5)
    return row


def newcomers(races: int, records: Records, count: int = NEWCOMERS) -> None:
    """Let clones of a member join one after the other; all run on the same instances.

    A clone looks after each batch until it has run on all of them, then the next one joins. The
    thresholds are those of ``multiplicity``; ``duels`` has 1 / (1 - certainty) for every pair. Of
    each pair the largest evidence over all looks counts, so losses are counted from above.
    """
    looks = default_looks(INSTANCES)
    names = ("per_member", "duels", "per_look")
    keys = [("newcomers", count + 1, 1, "inf", a, c, races) for a in names for c in CERTAINTY]
    if all(key in records for key in keys):
        return
    rng = seeded("newcomers")
    shares: dict[tuple[str, float], list[Floats]] = {key[4:6]: [] for key in keys}
    of_lead, of_ahead = PerMember.at(looks, CERTAINTY[0]).lead, PerLook.at(looks, 0.5).ahead
    factor = np.array([[multiplicity(r, i) for i in range(count + 1)] for r in range(count + 1)])
    step = max(1, AT_ONCE // ((count + 1) * INSTANCES))
    for first in range(0, races, step):
        # Any continuous law will do.
        noise = rng.random((1, min(step, races - first), INSTANCES, count + 1))
        for wins in count_wins(np.zeros((1, count + 1)), noise, looks)[0]:
            lead, ahead = (of.look_up(wins).max(axis=0) for of in (of_lead, of_ahead))
            for certainty in CERTAINTY:
                level = -np.log1p(-certainty)
                for name, lost in (
                    ("per_member", _join(lead, level + np.log(factor))),
                    ("duels", _join(lead, np.full_like(factor, level))),
                    ("per_look", _join(ahead, np.full_like(factor, certainty))),
                ):
                    shares[name, certainty].append(lost)
    for key in keys:
        lost = np.stack(shares[key[4:6]])
        tally = np.stack([lost[:, 0], lost[:, 0], np.full(races, np.nan), lost[:, 1:].mean(axis=1)])
        row = _summarise([tally.T])
        row = {k.replace("false_par", "newcomers_lost"): v for k, v in row.items()}
        records.add({**dict(zip(records.key, key, strict=True)), **row})


def _join(strength: Floats, enough: Floats) -> Floats:
    """Return which algorithms are ever eliminated (n,), from the largest evidence of each pair.

    ``enough``: how strong that must be by rivals at entry and number of the later entry.
    """
    n = len(strength)
    present, rivals, lost = np.arange(1), np.zeros(n, dtype=int), np.zeros(n)
    for newcomer in range(1, n):
        rivals[newcomer] = len(present)
        by_newcomer = strength[newcomer, present] >= enough[rivals[present], newcomer - present]
        lost[newcomer] = np.any(strength[present, newcomer] >= enough[len(present), 0])
        lost[present[by_newcomer]] = 1
        present = np.append(present[~by_newcomer], [] if lost[newcomer] else [newcomer]).astype(int)
    return lost


def equal_pairs(records: Records, races: int = 500, instances: int = 4096) -> None:
    """Keep how races of two equal algorithms end, at 1 and at 20 times: the first decision counts.

    Both run on all instances to the last time, with the default looks, until the race is over.
    """
    looks = default_looks(instances)
    for n_times in (1, 20):
        if (n_times, races) in records:
            continue
        rule, rng = PerMember.at(looks, CERTAINTY[0]), seeded("equal", n_times)
        truth = np.zeros((n_times, 2))
        ends: list[tuple[str, int]] = []
        step = max(1, AT_ONCE // (n_times * 2 * instances))
        for first in range(0, races, step):
            size = (min(step, races - first), instances, 2)
            noise = draw_persistent_noise(np.linspace(0, 1, n_times), size, 0.5, rng)
            ends += rule.first_end(count_wins(truth, noise, looks), looks)
        count = {kind: sum(end == kind for end, _ in ends) for kind, _ in ends}
        took = float(np.mean([seen for _, seen in ends]))
        records.add({"times": n_times, "races": races, "ends": count, "instances": round(took, 1)})
