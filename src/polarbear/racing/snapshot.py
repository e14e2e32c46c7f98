"""Snapshots of a race: all that follows from its events, as bytes.

A snapshot saves a resume the replay of the events before it. It holds the state and the rankings,
but no trajectories. The events stay the truth: a store verifies a snapshot against them, and drops
it when in doubt.

Small parts are JSON, which is read by the types of the fields of ``State``; a field that is added
there needs no change here. Parts with a number for each run are arrays. Nothing in a snapshot is
ever executed.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from itertools import accumulate, pairwise
from math import prod
from struct import Struct
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from polarbear.data.run import Status
from polarbear.racing.budget import Budget
from polarbear.racing.events import Identified, Started, from_json, to_json
from polarbear.racing.failures import Reason
from polarbear.racing.incremental_rankings import IncrementalRankings, LoadRuns
from polarbear.racing.questions.question import Entries, Question
from polarbear.racing.questions.stored import question_from_plain, question_to_plain
from polarbear.racing.run_sets import PairSet, RunIdSet
from polarbear.racing.state import State, start_state

VERSION = 1
"""The number of the layout of snapshots; a snapshot with another number is not used."""

_HEADER = Struct("<qq")
_DTYPES = frozenset({"|i1", "<i2", "<i4", "<i8", "<f8"})
_OF_START = frozenset({"seed", "times", "direction", "clock", "endless", "model"})
_AS_ARRAYS = frozenset({"used", "observed_until"})
_JSON_FIELDS = tuple(
    field.name for field in fields(State) if field.name not in _OF_START | _AS_ARRAYS
)


def encode_snapshot(state: State, rankings: IncrementalRankings) -> bytes:
    """Return the state and the rankings of a race as bytes."""
    ranked, arrays = rankings.to_plain(state.used)
    observed, times = _observed_to_arrays(state)
    arrays |= times
    arrays = dict(sorted(arrays.items(), key=lambda item: -item[1].itemsize))  # so all are aligned
    plain = {
        "state": {name: _to_plain(getattr(state, name)) for name in _JSON_FIELDS},
        "rankings": ranked,
        "observed": observed,
        "arrays": [(name, array.dtype.str, array.shape) for name, array in arrays.items()],
    }
    text = json.dumps(plain).encode()
    text += b" " * (-len(text) % 8)
    parts = (np.ascontiguousarray(array).data.cast("B") for array in arrays.values() if array.size)
    return b"".join([_HEADER.pack(VERSION, len(text)), text, *parts])


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
    version, size = _HEADER.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"a snapshot of version {version}, this program has {VERSION}")
    start = _HEADER.size + size
    plain = json.loads(data[_HEADER.size : start])
    arrays = _read_arrays(data, start, plain["arrays"])
    state = start_state(started)
    kinds = get_type_hints(State)
    for name in _JSON_FIELDS:
        setattr(state, name, _from_plain(kinds[name], plain["state"][name]))
    state.used = {name: place for place, name in enumerate(state.order)}
    state.observed_until = _observed_from_arrays(state.order, plain["observed"], arrays)
    rankings.restore(plain["rankings"], arrays, state.order)
    return state


def _read_arrays(data: bytes, start: int, listed: Any) -> dict[str, NDArray[Any]]:
    """Return arrays by name, from the bytes after ``start``; their types and sizes are checked."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape in listed:
        if dtype not in _DTYPES or any(length < 0 for length in shape):
            raise ValueError(f"an array of type {dtype} and shape {shape}")
        count = prod(shape)
        arrays[name] = np.frombuffer(data, dtype, count, start if count else 0).reshape(shape)
        start += arrays[name].nbytes
    if start != len(data):
        raise ValueError("the arrays do not end where the snapshot ends")
    return arrays


def _observed_to_arrays(state: State) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """Return names of algorithms, and arrays that say until when each was observed.

    The arrays are the number of algorithms by instance, then their codes and times.
    """
    observed = [state.observed_until[name] for name in state.order]
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


# Values of fields as plain values for JSON, and back by their types


_SCALARS: Mapping[Any, Any] = {bool: bool, int: int, float: int | float, str: str, Status: str}


def _to_plain(value: Any) -> Any:
    """Return a value as lists, numbers and text; infinite numbers stay, as Python reads them."""
    if isinstance(value, PairSet | RunIdSet):
        return value.to_plain()
    if isinstance(value, Budget):
        return value.plain()
    if isinstance(value, Question):
        return question_to_plain(value)
    if isinstance(value, Identified):
        return to_json(value)
    if isinstance(value, Entries):
        return [_to_plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return [(_to_plain(key), _to_plain(part)) for key, part in value.items()]
    if isinstance(value, Reason):
        return value.why, _to_plain(value.runs)
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_plain(part) for part in value]
    return value


def _from_plain(kind: Any, plain: Any) -> Any:
    """Return a value of a type from what ``_to_plain`` made of it; raise an error if it is none."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in _SCALARS:
        if not isinstance(plain, _SCALARS[origin]):
            raise TypeError(f"expected {origin}, got {plain!r:.80}")
        return Status(plain) if origin is Status else plain
    if origin is Literal:
        return plain
    if origin in (Union, UnionType):
        (some,) = (part for part in parts if part is not type(None))
        return None if plain is None else _from_plain(some, plain)
    if origin in (PairSet, RunIdSet, Budget):
        return origin.from_plain(plain)
    if origin is Question:
        return question_from_plain(plain)
    if origin is Identified:
        return from_json(plain)
    if origin in (dict, Counter):
        key, value = parts if origin is dict else (*parts, int)
        return origin({_from_plain(key, a): _from_plain(value, b) for a, b in plain})
    if origin in (list, set, frozenset) or parts[1:] == (...,):
        return origin(_from_plain(parts[0], part) for part in plain)
    types = parts or get_type_hints(origin).values()  # a tuple, or a record with named fields
    values = [_from_plain(part, each) for part, each in zip(types, plain, strict=True)]
    return tuple(values) if origin is tuple else origin(*values)
