"""How did the race get there? Dominance over rounds, who was out or resolved when."""

from dataclasses import dataclass

import numpy as np

from polarbear.data.frozen import Frozen
from polarbear.plots.colours import Cast
from polarbear.plots.sources import Bools, Floats, Ints, Racing, cast_of, race_of
from polarbear.racing.core import Race
from polarbear.selection.ratings import thinned


@dataclass(frozen=True, eq=False)
class Evolution(Frozen):
    """A race, round by round: R rounds, n algorithms in the order of the cast.

    Attributes
    ----------
    cast
        Everybody.
    instances, runs
        Shape (R,): on how many instances a decision rests, and how many runs were asked for.
    dominance
        Shape (R, n): the highest probability with which another one is ahead at all times; nan of
        those who were not racing, or when nobody could be compared.
    rival
        Shape (R, n): who that is, as a place in the cast; -1 where there is none.
    certainty
        Shape (R,): the probability from which on one is out.
    eliminated, resolved
        Shape (R, n): whether it was out, or known to belong, after this round.
    share
        Shape (R,): the share of pairs whose relation is known, after this round.
    """

    cast: Cast
    instances: Ints
    runs: Ints
    dominance: Floats
    rival: Ints
    certainty: Floats
    eliminated: Bools
    resolved: Bools
    share: Floats

    def __len__(self) -> int:
        return len(self.share)


def evolution_data(source: Racing, *, refits: int | None = None) -> Evolution:
    """How a race went. The posterior of each round is made again, which takes as long as then.

    ``refits``: of so many rounds at most, evenly chosen; there is no dominance of the others.

    >>> import polarbear as pb
    >>> runs = pb.testing.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40, persistence=np.inf)
    >>> found = evolution_data(pb.replay(runs))
    >>> found.share[-1], found.eliminated[-1].tolist()
    (np.float64(1.0), [False, True, True])
    """
    race, cast = race_of(source), cast_of(source)
    n, place = len(cast.names), {name: k for k, name in enumerate(cast.names)}
    stages = Race.after_each_round(source.events, fit=race.fit)
    backwards = np.arange(race.rounds)[::-1]  # so that the last one is always chosen
    chosen = {*(backwards if refits is None else thinned(backwards, refits)).tolist()}
    rows = [_row(stage, cast, place, k in chosen) for k, stage in enumerate(stages)]
    instances, runs, dominance, rival, certainty, out, settled, share = (
        zip(*rows, strict=True) if rows else ((),) * 8
    )
    return Evolution(
        cast,
        np.array(instances, dtype=np.int64),
        np.array(runs, dtype=np.int64),
        np.array(dominance, dtype=np.float64).reshape(-1, n),
        np.array(rival, dtype=np.int64).reshape(-1, n),
        np.array(certainty, dtype=np.float64),
        np.array(out, dtype=bool).reshape(-1, n),
        np.array(settled, dtype=bool).reshape(-1, n),
        np.array(share, dtype=np.float64),
    )


def _row(race: Race, cast: Cast, place: dict[str, int], refit: bool) -> tuple[object, ...]:
    """What a round adds."""
    state, n = race.state, len(cast.names)
    dominance, rival = np.full(n, np.nan), np.full(n, -1)
    posterior = race.posterior if refit else None
    if posterior is not None:
        everywhere = posterior.better_everywhere_matrix()
        if state.rules.elimination == "pointwise":
            # What the race goes by then: how sure one is at the worst time.
            everywhere = posterior.better_matrix().min(axis=0)
            np.fill_diagonal(everywhere, 0.0)
        codes = [place[name] for name in posterior.algorithms]
        dominance[codes] = everywhere.max(axis=0)
        rival[codes] = np.array(codes)[everywhere.argmax(axis=0)]
    open_ones = {name for names in state.open for name in names}
    known = len(state.racing) + len(state.eliminated)
    pairs = known * (known - 1) // 2
    return (
        len(state.order) if posterior is None else posterior.instances,
        state.spent_runs,
        dominance,
        rival,
        state.certainty,
        [name in state.eliminated for name in cast.names],
        [name in state.racing and name not in open_ones for name in cast.names],
        1 - len(state.open) / pairs if pairs else 1.0,
    )
