"""The decisions of the package for many simulated races at once.

Without ties the counts of a pair after a look are its wins and the number of instances, so every
e-value and every probability is looked up in a table that the package's functions have filled.
The tables only tell at which looks something may be decided. What is decided there comes from
``Claims`` and ``derive_verdicts``, as in a race.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from polarbear.inference.dominance import dominates
from polarbear.inference.e_values import (
    Evidence,
    log_lead,
    log_mean_over_times,
    log_par,
    multiplicity,
)
from polarbear.inference.verdicts import Claims, derive_verdicts
from polarbear.racing.budget import Budget

EPSILON = 0.05
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def default_looks(instances: int) -> Ints:
    """Return the numbers of instances at the looks of a race, if no forecast shortens a batch.

    >>> default_looks(100).tolist()
    [8, 16, 24, 32, 40, 48, 56, 64, 72, 81, 91, 100]
    """
    seen, looks = 0, []
    while seen < instances:
        seen = min(instances, seen + Budget().batch_after(seen))
        looks.append(seen)
    return np.array(looks)


def prob_ahead(wins: Floats, losses: Floats) -> Floats:
    """Return P(ahead) of one pair at one time with a uniform prior: the Beta posterior."""
    return betainc(losses + 1, wins + 1, 0.5)


def prob_alike(wins: Floats, losses: Floats, epsilon: float = EPSILON) -> Floats:
    """Return P(within epsilon of one half) of the same posterior."""
    high, low = (betainc(wins + 1, losses + 1, 0.5 + side) for side in (epsilon, -epsilon))
    return high - low


class Table(NamedTuple):
    """A function of wins and losses at each look, as one flat array."""

    start: Ints
    value: Floats

    @classmethod
    def of(cls, looks: Ints, function: Callable[[Floats, Floats], Floats]) -> "Table":
        values = [function(np.arange(n + 1.0), n - np.arange(n + 1.0)) for n in looks.tolist()]
        return cls(np.cumsum([0, *looks[:-1] + 1]), np.concatenate(values))

    def look_up(self, wins: Ints) -> Floats:
        """Return the values for wins (..., looks, n, n)."""
        return self.value[self.start[:, None, None] + wins]


class Decision(NamedTuple):
    """What was ever decided in each of R races of n algorithms."""

    eliminated: Bools  # (R, n)
    leads: Bools  # (R, n, n): row was called ahead of column somewhere
    closed: Bools  # (R, n, n): the pair was closed at par while both were in the race, if asked for


class PerMember(NamedTuple):
    """The default of the package: e-values, with the thresholds of a race of n at the start."""

    certainty: float
    lead: Table
    par: Table

    name = "per_member"

    @classmethod
    def at(cls, looks: Ints, certainty: float) -> "PerMember":
        lead = Table.of(looks, lambda won, lost: log_lead(won, lost, EPSILON))
        par = Table.of(looks, lambda won, lost: log_par(won, 0 * won, lost, EPSILON))
        return cls(certainty, lead, par)

    def decide(self, wins: Ints, closing: bool = False) -> Decision:
        """Return the decisions that follow from wins (T, R, looks, n, n)."""
        lead, par = self.lead.look_up(wins), self.par.look_up(wins)
        leads, pars = (log_mean_over_times(e) >= -np.log1p(-self.certainty) for e in (lead, par))
        beats = lead.min(axis=0) >= self._log_k(wins.shape[-1])

        def claims(race: int, look: int, kept: Sequence[int]) -> Claims:
            return self._claims(lead[:, race, look], par[:, race, look], kept)

        return _decide(beats, leads, closing & pars & pars.swapaxes(-1, -2), claims)

    def first_end(self, wins: Ints, looks: Ints) -> list[tuple[str, int]]:
        """Return how races of two end, from wins (T, R, looks, 2, 2), and after how many instances.

        "equivalent", "dominated" (one of them), "member" (both stay, one leads somewhere) or
        "undecided".
        """
        lead, par = self.lead.look_up(wins), self.par.look_up(wins)
        pars = log_mean_over_times(par) >= -np.log1p(-self.certainty)
        beats = lead.min(axis=0) >= self._log_k(2)
        done = (pars & pars.swapaxes(-1, -2) | beats)[..., [0, 1], [1, 0]].any(axis=-1)
        ends = []
        for race, at in enumerate(done):
            look = int(np.argmax(at)) if at.any() else len(looks) - 1
            claims = self._claims(lead[:, race, look], par[:, race, look], (0, 1))
            kinds = {one.kind for one in derive_verdicts(claims, EPSILON)}
            order = ("undecided", "dominated", "member", "equivalent")
            ends.append((next(kind for kind in order if kind in kinds), int(looks[look])))
        return ends

    def _log_k(self, n: int) -> Floats:
        return np.full((n, n), np.log(multiplicity(n - 1)) - np.log1p(-self.certainty))

    def _claims(self, lead: Floats, par: Floats, kept: Sequence[int]) -> Claims:
        """Return the claims of one race at one look, among those that are kept."""
        pairs = np.ix_(kept, kept)
        return Claims.from_e_values(
            [str(k) for k in kept],
            np.arange(1.0, len(lead) + 1.0),
            "time",
            Evidence(lead[:, *pairs], par[:, *pairs]),
            log_k=self._log_k(lead.shape[-1])[pairs],
            certainty=self.certainty,
            resolution="at_par",
        )


class PerLook(NamedTuple):
    """The paper's rule with a stand-in for the fit: the Beta posterior of each pair and time.

    An algorithm is eliminated if P(ahead) reaches the certainty at each time by itself.
    """

    certainty: float
    ahead: Table
    alike: Table

    name = "per_look"

    @classmethod
    def at(cls, looks: Ints, certainty: float) -> "PerLook":
        return cls(certainty, Table.of(looks, prob_ahead), Table.of(looks, prob_alike))

    def decide(self, wins: Ints, closing: bool = False) -> Decision:
        """Return the decisions that follow from wins (T, R, looks, n, n)."""
        certainty, n = self.certainty, wins.shape[-1]
        ahead, alike = self.ahead.look_up(wins), self.alike.look_up(wins)
        ahead[..., np.arange(n), np.arange(n)] = 0.5
        leads, beats = np.any(ahead >= certainty, axis=0), np.all(ahead >= certainty, axis=0)
        par = np.any((ahead >= certainty) | (alike >= certainty), axis=0)

        def claims(race: int, look: int, kept: Sequence[int]) -> Claims:
            pairs = (slice(None), *np.ix_(kept, kept))
            at, same = ahead[:, race, look][pairs], alike[:, race, look][pairs]
            return Claims.from_probabilities(
                [str(k) for k in kept],
                np.arange(1.0, len(wins) + 1.0),
                "time",
                ahead=at,
                alike=same,
                prob_in_pareto=np.zeros(len(kept)),
                beats=dominates(at, at.min(axis=0), certainty, "pointwise"),
                sure=at.min(axis=0),
                certainty=certainty,
                resolution="at_par",
            )

        return _decide(beats, leads, closing & par & par.swapaxes(-1, -2), claims)


RULES = (PerMember, PerLook)


def _decide(
    beats: Bools, leads: Bools, closed: Bools, claims: Callable[[int, int, Sequence[int]], Claims]
) -> Decision:
    """Ask the package for its decision wherever something may be decided: (R, looks, n, n)."""
    races, n = len(beats), beats.shape[-1]
    eliminated = np.zeros((races, n), dtype=bool)
    ever_closed = np.zeros((races, n, n), dtype=bool)
    either = (beats | closed) & ~np.eye(n, dtype=bool)
    at = np.any(either, axis=(2, 3))
    for race in np.flatnonzero(np.any(at, axis=1)).tolist():
        kept = list(range(n))
        for look in np.flatnonzero(at[race]).tolist():
            new = beats[race, look] | (closed[race, look] & ~ever_closed[race])
            if not (new & ~np.eye(n, dtype=bool))[np.ix_(kept, kept)].any():
                continue
            now = claims(race, look, kept)
            settled = ~now.open_at.any(axis=0) & ~now.beats & ~now.beats.T
            ever_closed[race][np.ix_(kept, kept)] |= settled
            verdicts = derive_verdicts(now, EPSILON)
            out = {int(one.algorithm) for one in verdicts if one.kind == "dominated"}
            eliminated[race, list(out)] = True
            kept = [k for k in kept if k not in out]
    return Decision(eliminated, np.any(leads, axis=1), ever_closed)
