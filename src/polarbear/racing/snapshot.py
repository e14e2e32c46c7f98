"""Snapshots of a race: all that follows from its events, as bytes.

A snapshot saves a resume the replay of the events before it. It holds the state and the rankings,
but no trajectories. The events stay the truth: a store verifies a snapshot against them, and drops
it when in doubt.

Small parts are JSON, which is read by the types of the fields of ``State`` and its parts; a field
that is added there needs no change here. Parts with a number for each run are arrays. Nothing in a
snapshot is ever executed.
"""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields
from io import BytesIO
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from polarbear.inference.archive import pack_arrays, read_arrays
from polarbear.racing.codec import from_plain, to_plain
from polarbear.racing.events import Started
from polarbear.racing.incremental_rankings import IncrementalRankings, LoadRuns
from polarbear.racing.state import State, start_state

KIND, VERSION = "snapshot of a race", 1
_AS_ARRAYS = frozenset({"used", "observed_until"})
"""The fields of the pool that are arrays here, or follow from others."""


def encode_snapshot(state: State, rankings: IncrementalRankings) -> bytes:
    """Return the state and the rankings of a race as bytes."""
    ranked, arrays = rankings.to_plain(state.pool.used)
    observed, times = _observed_to_arrays(state)
    plain = {
        "kind": KIND,
        "version": VERSION,
        "state": {part.name: _part_to_plain(getattr(state, part.name)) for part in fields(state)},
        "rankings": ranked,
        "observed": observed,
    }
    buffer = BytesIO()
    pack_arrays(buffer, json.dumps(plain), arrays | times, zipfile.ZIP_STORED)
    return buffer.getvalue()


class StoredRuns(NamedTuple):
    """The runs of a race in a store, for a race that is restored without their trajectories.

    ``load`` returns the runs on some instances. ``snapshot`` is what follows from earlier events.
    """

    load: LoadRuns
    snapshot: bytes | None = None

    def restore(self, started: Started, rankings: IncrementalRankings) -> State:
        """Return the state of a race at the snapshot, or at its start, and restore its rankings."""
        rankings.use_store(self.load)
        if self.snapshot is None:
            return start_state(started)
        return decode_snapshot(self.snapshot, started, rankings)


def decode_snapshot(data: bytes, started: Started, rankings: IncrementalRankings) -> State:
    """Return the state, and restore the rankings of the race with this first event in place.

    Raises an error if the bytes are not a snapshot of such a race.
    """
    plain, arrays = read_arrays(BytesIO(data), KIND, VERSION)
    state = start_state(started)
    for name, kind in get_type_hints(State).items():
        setattr(state, name, from_plain(kind, plain["state"][name]))
    pool = state.pool
    pool.used = {name: place for place, name in enumerate(pool.order)}
    pool.observed_until = _observed_from_arrays(pool.order, plain["observed"], arrays)
    rankings.restore(plain["rankings"], arrays, pool.order)
    return state


def _part_to_plain(part: Any) -> dict[str, Any]:
    """Return a part of the state as plain values, without what is stored as arrays."""
    names = [one.name for one in fields(part) if one.name not in _AS_ARRAYS]
    return {name: to_plain(getattr(part, name)) for name in names}


def _observed_to_arrays(state: State) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """Return names of algorithms, and arrays that say until when each was observed.

    The arrays are the number of algorithms by instance, then their codes and times.
    """
    observed = [state.pool.observed_until[name] for name in state.pool.order]
    names: dict[str, int] = {}
    n_all = sum(map(len, observed))
    codes = (names.setdefault(name, len(names)) for on in observed for name in on)
    until = (time for on in observed for time in on.values())
    arrays: dict[str, NDArray[Any]] = {
        "observed_number": np.array([len(on) for on in observed], dtype="<i4"),
        "observed_algorithm": np.fromiter(codes, "<i4", n_all),
        "observed_until": np.fromiter(until, "<f8", n_all),
    }
    return list(names), arrays


def _observed_from_arrays(
    order: list[str], names: list[str], arrays: Mapping[str, NDArray[Any]]
) -> dict[str, dict[str, float]]:
    """Return by instance and algorithm until when it was observed, from arrays."""
    algorithms = [names[k] for k in arrays["observed_algorithm"].tolist()]
    until = arrays["observed_until"].tolist()
    ends = pairwise(accumulate(arrays["observed_number"].tolist(), initial=0))
    return {
        instance: dict(zip(algorithms[low:high], until[low:high], strict=True))
        for instance, (low, high) in zip(order, ends, strict=True)
    }
