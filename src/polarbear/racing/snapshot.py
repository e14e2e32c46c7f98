"""Snapshots of a race: all that follows from its events, as bytes.

A snapshot saves a resume the replay of the events before it. It holds the state and the rankings,
but no trajectories. The events stay the truth: a store verifies a snapshot against them, and drops
it when in doubt.

The state is JSON, which is read by the types of the fields of ``State`` and its parts; a field that
is added there needs no change here. The rankings are arrays. Nothing in a snapshot is executed.
"""

import json
import zipfile
from dataclasses import fields
from io import BytesIO
from typing import Any, NamedTuple, get_type_hints

from polarbear.data.array_files import pack_arrays, read_arrays
from polarbear.racing.codec import from_plain, to_plain
from polarbear.racing.events import Started
from polarbear.racing.incremental_rankings import IncrementalRankings, LoadRuns
from polarbear.racing.state import State, start_state

KIND, VERSION = "snapshot of a race", 1


def encode_snapshot(state: State, rankings: IncrementalRankings) -> bytes:
    """Return the state and the rankings of a race as bytes."""
    ranked, arrays = rankings.to_plain(state.pool.used)
    plain = {
        "kind": KIND,
        "version": VERSION,
        "state": {part.name: _part_to_plain(getattr(state, part.name)) for part in fields(state)},
        "observed": state.pool.observed_until,
        "rankings": ranked,
    }
    buffer = BytesIO()
    pack_arrays(buffer, json.dumps(plain), arrays, zipfile.ZIP_STORED)
    return buffer.getvalue()


def _part_to_plain(part: Any) -> dict[str, Any]:
    """Return a part of the state as plain values, but what follows, or has a number for each run.

    The latter is written without the codec, which takes much longer.
    """
    names = [one.name for one in fields(part) if one.name not in ("used", "observed_until")]
    return {name: to_plain(getattr(part, name)) for name in names}


class StoredRuns(NamedTuple):
    """The runs of a race in a store, for a race that is restored without their trajectories.

    ``load`` returns the runs on some instances. ``snapshot`` is what follows from earlier events.
    """

    load: LoadRuns
    snapshot: bytes | None = None

    def restore(self, started: Started, rankings: IncrementalRankings) -> State:
        """Return the state of a race at the snapshot, or at its start, and restore its rankings.

        Raises an error if the bytes are not a snapshot of such a race.
        """
        rankings.load = self.load
        state = start_state(started)
        if self.snapshot is None:
            return state
        plain, arrays = read_arrays(BytesIO(self.snapshot), KIND, VERSION)
        for name, kind in get_type_hints(State).items():
            setattr(state, name, from_plain(kind, plain["state"][name]))
        pool = state.pool
        pool.used = {name: place for place, name in enumerate(pool.order)}
        pool.observed_until = plain["observed"]
        times = (time for on in pool.observed_until.values() for time in on.values())
        if list(pool.observed_until) != pool.order or not {*map(type, times)} <= {float}:
            raise ValueError(
                "it is not said until when each algorithm was observed on each instance"
            )
        rankings.restore(plain["rankings"], arrays, pool.order)
        return state
