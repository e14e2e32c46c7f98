"""How a race went, as figures show it, in a small file: figures are made again without the race."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polarbear as pb
from polarbear.data.colours import Cast
from polarbear.plots.arguments import get_cast
from polarbear.plots.evolution import Evolution, evolution_data
from polarbear.plots.rating_curves import RatingCurves, ratings_data
from polarbear.plots.run_allocation import Allocation, allocation_data
from polarbear.plots.values import Values, values_data

Floats = NDArray[np.float64]

PANELS = 6
"""Rounds whose ratings are kept, at most."""

FILE = "story.npz"


@dataclass(frozen=True)
class Story:
    """The data of the figures of a race; an algorithm has the same style in all of them.

    Attributes
    ----------
    rounds
        Ratings after rounds in which something happened, by what happened; the last is the end.
    evolution, allocation
        Round by round, and what was spent on whom.
    values
        The value of each algorithm if any time may be the last ("linear"), or any order of
        magnitude ("log").
    """

    rounds: Mapping[str, RatingCurves]
    evolution: Evolution
    allocation: Allocation
    values: Mapping[str, Values]


KINDS = {kind.__name__: kind for kind in (Story, Cast, RatingCurves, Evolution, Allocation, Values)}


def tell(
    source: pb.Race,
    rounds: Sequence[Mapping[str, Any]],
    most: int = PANELS,
    truth: Mapping[str, Floats] | None = None,
) -> Story:
    """The story of a race; posteriors of its rounds are made again.

    ``rounds`` is its :func:`tools.races.course`; ``truth`` has log-utilities over time.
    """
    cast, told = get_cast(source), {}
    wanted = key_rounds(rounds, most)
    stages = pb.Race.after_each_round(source.events, question=source.question)
    for number, stage in enumerate(stages, start=1):
        if number in wanted and (seen := stage.posterior) is not None:
            true = None if truth is None else np.stack([truth[k] for k in seen.algorithms], axis=1)
            told[wanted[number]] = replace(ratings_data(seen, truth=true), cast=cast)
    asked = {scale: pb.preferences.between(scale=scale) for scale in ("linear", "log")}
    values = {scale: replace(values_data(source, one), cast=cast) for scale, one in asked.items()}
    return Story(told, evolution_data(source), allocation_data(source), values)


def key_rounds(rounds: Sequence[Mapping[str, Any]], most: int = PANELS) -> dict[int, str]:
    """The rounds in which an algorithm was eliminated or settled, and the last one, in words.

    Of more than ``most`` the first and the last are kept, and others evenly between.
    """
    found, before = dict[int, str](), set[str]()
    for one in rounds:
        out = [name for name, *_ in one["eliminated"]]
        new = [name for name in one["settled"] if name not in before]
        before.update(new)
        happened = [f"{', '.join(out)} out"] if out else []
        who = ", ".join(new) if len(new) < 4 else f"the last {len(new)}"
        happened += [f"{who} settled"] if new else []
        if happened or one is rounds[-1]:
            said = ", ".join(happened) or "the last"
            found[one["round"]] = f"round {one['round']}, {one['instances']:,} instances: {said}"
    at = np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).round().astype(int))
    numbers = list(found)
    return {numbers[k]: found[numbers[k]] for k in at.tolist()}


def save(story: Story, path: Path) -> None:
    """Write a story; numbers to single precision."""
    arrays: list[NDArray[Any]] = []
    said = json.dumps(_packed(story, arrays))
    path.parent.mkdir(parents=True, exist_ok=True)
    named: dict[str, Any] = {f"a{k}": a for k, a in enumerate(arrays)}
    np.savez_compressed(path, said=np.array(said), **named)


def load(path: Path) -> Story:
    """What :func:`save` has written."""
    with np.load(path, allow_pickle=False) as file:
        return _unpacked(json.loads(str(file["said"])), file)


def _packed(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """A value without its arrays, which are collected."""
    if isinstance(value, np.ndarray):
        arrays.append(value.astype(np.float32) if value.dtype.kind == "f" else value)
        return {"array": len(arrays) - 1}
    if is_dataclass(value):
        inside = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"kind": type(value).__name__, "fields": _packed(inside, arrays)}
    if isinstance(value, Mapping):
        return {"items": [[key, _packed(one, arrays)] for key, one in value.items()]}
    return value


def _unpacked(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[f"a{value['array']}"]
    if "kind" in value:
        return KINDS[value["kind"]](**_unpacked(value["fields"], arrays))
    return {key: _unpacked(one, arrays) for key, one in value["items"]}
