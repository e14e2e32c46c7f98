"""Who would be missed: the definition of the default question, on win probabilities."""

import numpy as np
from numpy.typing import NDArray

import polarbear as pb
from polarbear.data.positions import UNKNOWN
from polarbear.inference.replacing import find_stretches
from polarbear.racing.race import Race

Floats = NDArray[np.float64]

MARGIN, WIDTH = 0.1, 0.1


def find_replacing(wins: Floats, losses: Floats, times: Floats) -> np.ndarray:
    """Return whether row replaces column, from the shares (T, n, n) of wins and losses."""
    holds = np.ones(wins.shape[1:], dtype=bool)
    for stretch in find_stretches(times, WIDTH):
        won, lost = wins[stretch].mean(axis=0), losses[stretch].mean(axis=0)
        relative = (0.5 + MARGIN) * won - (0.5 - MARGIN) * lost
        holds &= np.maximum(relative, (won - lost + MARGIN) / 2) >= 0
    return holds & (wins.mean(axis=0) > losses.mean(axis=0))


def replacing_by_utilities(truth: Floats, times: Floats) -> np.ndarray:
    """Return whether row replaces column, from the log-utilities (T, n)."""
    wins = 1 / (1 + np.exp(truth[:, None, :] - truth[:, :, None]))
    return find_replacing(wins, 1 - wins, times)


def replacing_in_pool(runs: pb.Runs, times: Floats) -> np.ndarray:
    """Return whether row replaces column if the recorded runs are all there is."""
    rankings = pb.rank(runs, times)
    place = rankings.position.reshape(len(times), -1, len(rankings.algorithms))
    place = place[:, (place != UNKNOWN).all(axis=(0, 2))]
    wins = (place[:, :, :, None] < place[:, :, None, :]).mean(axis=1)
    return find_replacing(wins, wins.swapaxes(1, 2), times)


def count_missed(race: Race, replaces: np.ndarray, algorithms: list[str]) -> int:
    """Return how many were dropped although nobody that stays truly replaces them."""
    code = {name: k for k, name in enumerate(algorithms)}
    stays = [code[name] for name in algorithms if name not in race.eliminated]
    return sum(not replaces[stays, code[name]].any() for name in race.eliminated)
