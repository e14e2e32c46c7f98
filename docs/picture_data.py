"""What the pictures of pages show, in numbers and words.

``take_pictures.py`` draws it and keeps it in ``pictures.json``. ``tests/test_pictures.py`` computes
it again: a picture that no longer shows what the software says is found without a look at pixels.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import polarbear as pb
import reported
from polarbear.coordinator.run_race import SolverRace
from polarbear.inference.replacing import Duels, DuelTally, PairEvidence, find_stretches, weigh
from polarbear.plots import Cast
from polarbear.reporting.content import make_document

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))

from judge.in_process import InProcess

DOCS = Path(__file__).resolve().parent
KEPT = DOCS / "pictures.json"
CERTAINTY = 0.95
SKILL = {"early": (1.3, 0.1), "late": (-0.6, 1.8), "good": (0.8, 0.9), "worst": (-1.0, -1.0)}
RACE_TIMES = [10, 100, 1_000]
SHOWN_ROUND = 3
"""The round after which the picture of a terminal is taken."""

MAX_VALUES = 8
"""The number of values along an axis of an array that are kept."""


@cache
def fit_example() -> pb.Posterior:
    """The posterior of the recorded runs that come with the package."""
    return pb.fit(pb.example("cma-variants"))


@cache
def fit_known_optimisers() -> pb.Posterior:
    """The posterior of the recorded runs of optimisers that everybody knows."""
    return pb.fit(pb.example())


@cache
def replay_example() -> pb.plots.Evolution:
    """The rounds of a race over the recorded runs."""
    runs = pb.example("cma-variants")
    return pb.plots.evolution_data(pb.replay(runs, pb.ParetoSet(certainty=CERTAINTY)))


def describe_first_answer() -> dict[str, Any]:
    """The figure of the README, and the preview of links."""
    posterior = fit_known_optimisers()
    return {
        "ribbon": pb.plots.ribbon_data(posterior),
        "ratings": pb.plots.ratings_data(posterior),
    }


def describe_looking(races: int = 400, most: int = 500, n_times: int = 20) -> dict[str, Any]:
    """How many races of two equal algorithms have called one better, after so many instances.

    A usual test, at 5 % after every batch, and the rule of races.
    """
    times, rng = np.linspace(1, 2, n_times), np.random.default_rng(0)
    noise = pb.simulation.draw_persistent_noise(times, (most, races, 2), 0.5, rng)
    places = noise.reshape(n_times, most, 2 * races)
    lead = np.sign(noise[..., 1] - noise[..., 0]).mean(axis=0)  # (instances, races)
    stretches, first = find_stretches(times, 0.1), np.arange(0, 2 * races, 2)
    looks = [0]
    while looks[-1] < most:
        looks.append(min(most, looks[-1] + pb.Budget().batch_after(looks[-1])))
    called, tally = np.zeros((2, races), dtype=bool), None
    shares = {"a test at 5 % after every batch": [], "a race of PolarBear": []}
    for before, look in pairwise(looks):
        new = Duels.of(first, first + 1, places[:, before:look], stretches, np.ones(look - before))
        added = DuelTally.of(new, stretches)
        tally = added if tally is None else tally.join(added)
        evidence = PairEvidence.empty(len(stretches), (2 * races, 2))
        both = (first, np.ones_like(first)), (first + 1, np.zeros_like(first))
        weigh(evidence, both, tally, 0.1)
        needed = np.log(1 / (1 - CERTAINTY))
        shown = (evidence.no_worse >= needed).all(axis=0) & (evidence.better >= needed)
        replaces = shown.any(axis=1).reshape(races, 2).any(axis=1)
        seen = lead[:look]
        usual = np.abs(seen.mean(axis=0)) > 1.96 * seen.std(axis=0, ddof=1) / np.sqrt(look)
        called |= [usual, replaces]
        for name, share in zip(shares, called.mean(axis=1), strict=True):
            shares[name].append(share)
    return {"instances": np.array(looks[1:]), **{k: np.array(v) for k, v in shares.items()}}


def describe_figures() -> dict[str, Any]:
    """The four panels of the page on figures."""
    posterior, until = fit_example(), pb.preferences.between(3_000, 10_000)
    return {
        "A": pb.plots.ratings_data(posterior),
        "B": pb.plots.values_data(posterior, until),
        "C": pb.plots.crossings_data(posterior, "CSA", "XNES", certainty=CERTAINTY),
        "D": replay_example(),
    }


def describe_paper_figure() -> dict[str, Any]:
    """The two panels of the figure in the paper."""
    return {
        "A": pb.plots.ratings_data(fit_example()),
        "B": replay_example(),
    }


def describe_report() -> dict[str, Any]:
    """The first screen of the report of the example."""
    posterior = fit_example()
    content = make_document(posterior, certainty=CERTAINTY)
    rows = zip(posterior.algorithms, content["rows"], strict=True)
    return {
        "rows": {name: f"{row['badge']}, {row['when']}" for name, row in rows},
        "ribbon": pb.plots.ribbon_data(posterior),
        "ratings": pb.plots.ratings_data(posterior, certainty=CERTAINTY),
    }


FIRST_SCREENS = {"seven": "7", "thirty": "30", "fifty": "50", "classes": "", "failures": ""}
"""The pictures of first screens, and the subjects that they show if named otherwise."""


@cache
def make_subject(name: str) -> Any:
    """What the picture of a first screen shows."""
    return reported.SUBJECTS[FIRST_SCREENS[name] or name]()


def describe_first_screen(name: str) -> dict[str, Any]:
    """The first screen of the report of a subject."""
    content = make_document(make_subject(name), certainty=CERTAINTY)
    rows = zip(content["algorithms"], content["rows"], strict=True)
    ribbons = content["classes"]["each"] if content["classes"] else [content]
    return {
        "facts": [text for text, _ in content["facts"]],
        "rows": {name: f"{row['badge']}, {row['when']}" for name, row in rows},
        "ribbons": [one["ribbons"]["log"]["says"] for one in ribbons],
    }


def describe_tutorial_report() -> dict[str, Any]:
    """The verdict that the tutorial prints; ``run_tutorials.py`` compares it with the software."""
    page = (DOCS / "tutorials" / "i-have-data.md").read_text("utf-8")
    printed = re.search(r"^\$ python verdict\.py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert printed
    return {"verdict": printed[1]}


@cache
def make_constrained(rng: np.random.Generator) -> Callable[[np.ndarray], tuple[float, float]]:
    """Make a problem with one constraint: the function returns a value and a violation."""
    centre, normal = rng.normal(size=8), rng.normal(size=8)
    normal /= np.linalg.norm(normal)
    bound = normal @ centre + 2
    return lambda x: (float(np.sum((x - centre) ** 2)), float(max(0.0, bound - normal @ x)))


def repair_first(job: Any) -> None:
    """A solver that reduces the violation first, then the value."""
    x = 2 * job.rng.normal(size=8)
    value, violation = job.instance(x)
    for k in range(1, int(job.horizon) + 1):
        y = x + 0.5 * job.rng.normal(size=8)
        new, broken = job.instance(y)
        job.report(new, time=k, violation=broken)
        if (broken, new) < (violation, value):
            x, value, violation = y, new, broken


def add_penalty(job: Any) -> None:
    """A solver that adds a growing penalty for the violation to the value."""
    x, step = 2 * job.rng.normal(size=8), 1.0
    value, violation = job.instance(x)
    for k in range(1, int(job.horizon) + 1):
        y, weight = x + step * job.rng.normal(size=8), 0.2 * k**0.5
        new, broken = job.instance(y)
        job.report(new, time=k, violation=broken)
        accepted = new + weight * broken <= value + weight * violation
        step *= 1.5 if accepted else 0.9
        if accepted:
            x, value, violation = y, new, broken


def describe_constraints() -> dict[str, Any]:
    """Race two ways to treat constraints: when do runs become feasible and good?"""
    solvers = {"repair first": repair_first, "penalty": add_penalty}
    result = pb.race(
        solvers, make_constrained, times=[300, 1000], direction="minimize", clock="reported"
    )
    runs, times = result.runs, np.unique(np.geomspace(10, 1_000, 40).round())
    values = runs.feasible().at(times)
    own = {name: values[runs.algorithm == k] for k, name in enumerate(runs.algorithms)}
    return {
        "ratings": pb.plots.ratings_data(pb.fit(runs, times=times)),
        "share of feasible runs": {n: np.isfinite(v).mean(axis=0) for n, v in own.items()},
        "median value": {name: np.median(v, axis=0) for name, v in own.items()},
    }


def make_solver(early: float, late: float, pause: Callable[[], None] = lambda: None) -> Any:
    """A solver that is so good at first and at last."""

    def search(job: Any) -> Iterator[tuple[float, float]]:
        luck = job.rng.gumbel()
        for step, share in enumerate((0.0, 0.5, 1.0), 1):
            pause()
            yield 10**step, -luck - early * (1 - share) - late * share - 5 * step

    return search


def race(pause: Callable[[], None] = lambda: None, **options: Any) -> SolverRace:
    """The race of the pictures; what it decides does not depend on where it runs."""
    solvers = {name: make_solver(*skill, pause) for name, skill in SKILL.items()}
    asked = {"question": pb.ParetoSet(certainty=CERTAINTY), "budget": pb.Budget(runs=5_000)}
    return pb.race(solvers, range(1_000), RACE_TIMES, direction="minimize", **asked, **options)


@cache
def describe_race() -> dict[str, Any]:
    """The race in a terminal after some rounds, and in a browser at its end."""
    middle = list[str]()

    def watch(progress: Any) -> None:  # how many runs are in depends on the machine
        if progress.counts.rounds <= SHOWN_ROUND:
            middle[:] = [f"{one.algorithm} {one.brief()}" for one in progress.verdicts]

    result = race(executor=InProcess(), progress=watch)
    assert result.posterior
    return {
        "terminal": {"verdicts": middle},
        "browser": {
            "verdicts": [f"{one.algorithm} {one.brief()}" for one in result.verdicts()],
            "ratings": pb.plots.ratings_data(result.posterior),
        },
    }


PICTURES: dict[str, Callable[[], dict[str, Any]]] = {
    "docs/_static/preview.png": describe_first_answer,
    "docs/first-answer.png": describe_first_answer,
    "docs/looking.png": describe_looking,
    **{
        f"docs/design/first-screens/{name}.png": partial(describe_first_screen, name)
        for name in FIRST_SCREENS
    },
    "docs/how-to/constraints.png": describe_constraints,
    "docs/how-to/figures.png": describe_figures,
    "docs/how-to/report.png": describe_report,
    "docs/how-to/terminal.svg": lambda: describe_race()["terminal"],
    "docs/how-to/served.png": lambda: describe_race()["browser"],
    "docs/tutorials/report.png": describe_tutorial_report,
    "paper/figure.png": describe_paper_figure,
}
SKETCHES = ("docs/_static/idea.svg", "docs/_static/logo.svg", "docs/explanation/pareto.svg")
"""Drawn by hand; they show no numbers."""


def to_plain(thing: Any) -> Any:
    """Data as JSON has it: some values of each array, to three digits, and the colour of names."""
    if isinstance(thing, Cast):
        return {name: style.colour for name, style in thing.styles().items()}
    if is_dataclass(thing):
        return {one.name: to_plain(getattr(thing, one.name)) for one in fields(thing)}
    if isinstance(thing, dict):
        return {name: to_plain(value) for name, value in thing.items()}
    if isinstance(thing, np.ndarray):
        at = np.linspace(0, len(thing) - 1, min(len(thing), MAX_VALUES)).round().astype(int)
        return [to_plain(one) for one in thing[at]]
    if isinstance(thing, list | tuple):
        return [to_plain(one) for one in thing]
    if isinstance(thing, float | np.floating):
        return float(f"{thing:.3g}") if np.isfinite(thing) else None
    if isinstance(thing, bool | np.bool_):
        return bool(thing)
    return int(thing) if isinstance(thing, int | np.integer) else thing and str(thing)


def keep(pictures: dict[str, Any]) -> None:
    """Write down what these pictures show; others keep what was written."""
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    kept |= {name: to_plain(data) for name, data in pictures.items()}
    lines = (f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept))
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
