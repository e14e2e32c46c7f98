"""Sentences for the methods section of a paper, with the numbers of an analysis."""

from __future__ import annotations

from collections.abc import Sequence

from polarbear._text import (
    escape_text,
    format_count,
    format_duration,
    format_list,
    format_range,
    format_share,
    name_point,
)
from polarbear.data.run import FAILED
from polarbear.data.run_ends import RunEnds, describe_unstated, format_counts
from polarbear.errors import DataError
from polarbear.inference.counted import MODEL_WEIGHT
from polarbear.inference.posterior import Posterior
from polarbear.inference.verdicts import Verdict
from polarbear.inference.versions import software_versions
from polarbear.racing.race import Race
from polarbear.racing.status import RaceStatus

CERTAINTY = 0.95
"""The default certainty of statements about a posterior."""

MAX_NAMES = 50
"""The most names of algorithms in a sentence."""


def describe_comparison(
    verb: str, n_algorithms: int, n_instances: int, times: Sequence[float], clock: str
) -> str:
    """Return a sentence on what was compared, at which times, and with which software.

    >>> describe_comparison("compared", 3, 20, [1.0, 10.0], "wall")
    'We compared 3 algorithms on 20 instances at 2 times from 1 to 10 seconds with PolarBear ...'
    """
    versions = software_versions()
    software = ", ".join(f"{name} {number}" for name, number in [*versions.items()][1:])
    span = format_range(times[0], times[-1], clock)
    points = format_count(len(times), name_point(clock))
    when = f"at {points}{' from' if len(times) > 1 else ':'} {span}"
    return (
        f"We {verb} {format_count(n_algorithms, 'algorithm')} on "
        f"{format_count(n_instances, 'instance')} {when} with PolarBear "
        f"{versions['polarbear-race']} ({software})."
    )


def describe_runs(ends: Sequence[RunEnds], instances: int) -> list[str]:
    """Return sentences on the number of runs, and on missing, failed and unstated ones.

    >>> describe_runs([RunEnds("a", 9, {"cut": 16, "crashed": 2}), RunEnds("b", 9, {"cut": 18})], 9)
    ['There are 36 runs, 2 for each algorithm and instance on average.', 'Failed: 2 of 18 runs of \
a (2 crashed). A failed run keeps its best value.']
    """
    if not ends:
        return []
    numbers = sorted({one.n_runs for one in ends})
    total = format_count(sum(one.n_runs for one in ends), "run")
    missing = [
        f"{one.algorithm} ran on {one.instances:,} of {instances:,}"
        for one in ends
        if one.instances < instances
    ]
    each = f"{numbers[0]:,} to {numbers[-1]:,} of each algorithm"
    if len(numbers) == 1 and not missing and numbers[0] % max(instances, 1) == 0:
        average = "" if numbers[0] <= instances else " on average"
        each = f"{numbers[0] // max(instances, 1):,} for each algorithm and instance{average}"
    elif len(numbers) == 1:
        each = f"{numbers[0]:,} of each algorithm"
    sentences = [f"There are {total}, {each}."]
    if missing:
        sentences.append(f"Instances are missing: {format_list(missing, MAX_NAMES)}.")
    failed = [
        f"{one.n_failed:,} of {one.n_runs:,} runs of {one.algorithm} "
        f"({format_counts({how: n for how, n in one.counts.items() if how in FAILED})})"
        for one in ends
        if one.n_failed
    ]
    if failed:
        sentences.append(
            f"Failed: {format_list(failed, MAX_NAMES)}. A failed run keeps its best value."
        )
    if unstated := describe_unstated(ends):
        sentences.append(f"{unstated}; they are taken to have finished by themselves.")
    return sentences


def describe_model(posterior: Posterior) -> str:
    """Return sentences on the model of the rankings, its posterior and what is counted."""
    units = {
        "instances": "Instances are the units of evidence.",
        "rankings": "Every ranking at every time counts as independent evidence.",
    }
    said = (
        "A temporal Plackett-Luce model describes how the algorithms rank on an instance at each "
        f"time, with the prior {posterior.prior}. {units.get(posterior.evidence, '')} The method "
        f"of inference is {posterior.method}."
    )
    if posterior.counted:
        said += (
            " A rating is the share of instances on which an algorithm comes first, by a Dirichlet "
            f"process around the model, which counts as much as {MODEL_WEIGHT:g} instances."
        )
    return said


def describe_replacement(margin: float, width: float) -> str:
    """Return what it takes to replace an algorithm, as a clause without its subject.

    >>> describe_replacement(0, 0)
    'has the higher rating at all times'
    """
    if not (margin or width):
        return "has the higher rating at all times"
    return (
        "wins more duels on average over all times, and at least "
        f"{100 * (0.5 - margin):g}% of them on each stretch of {100 * width:g}% of the time axis"
    )


def describe_equivalence(epsilon: float) -> str:
    """Return a sentence that defines when algorithms are equivalent."""
    return (
        "Two algorithms are equivalent at a time if each beats the other with a probability within "
        f"{epsilon:g} of one half."
    )


def describe_result(verdicts: Sequence[Verdict]) -> str:
    """Return sentences that name the algorithms by their verdict."""
    kept = [one.algorithm for one in verdicts if one.is_candidate]
    names = {
        kind: [one.algorithm for one in verdicts if one.kind == kind]
        for kind in ("dominated", "undecided", "removed")
    }
    members = f"{{{format_list(kept, MAX_NAMES)}}}"
    sentences = [f"The anytime Pareto set is {members}."]
    if names["undecided"]:
        undecided = format_list(names["undecided"], MAX_NAMES)
        which = "all of these are" if names["undecided"] == kept else f"of these, {undecided} are"
        sentences = [f"The algorithms that stay are {members}; {which} undecided."]
    has_margin = any(one.margin is not None for one in verdicts if one.kind == "dominated")
    words = {"dominated": "Replaceable" if has_margin else "Dominated", "removed": "Removed"}
    sentences += [
        f"{word}: {format_list(names[kind], MAX_NAMES)}."
        for kind, word in words.items()
        if names[kind]
    ]
    return " ".join(sentences)


def describe_methods(
    source: Posterior | Race,
    certainty: float | None = None,
    *,
    margin: float = 0.1,
    width: float = 0.1,
) -> str:
    """Return a paragraph for the methods section of a paper, with the numbers of an analysis.

    ``certainty`` (by default 0.95), ``margin`` and ``width`` are for a posterior; a race has its
    own.

    >>> import numpy as np, polarbear as pb
    >>> print(describe_methods(pb.fit(pb.simulation.simulate_rankings(np.zeros((2, 3)), 9))))
    We compared 3 algorithms on 9 instances at 2 times from 0 to 1 with PolarBear ...
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 60)
    >>> print(describe_methods(pb.replay(runs)))
    We raced 3 algorithms on 24 instances at 3 times from 0 to 1 with PolarBear ...
    """
    if isinstance(source, Race):
        refuse_certainty(certainty)
        return _describe_race(source)
    return _describe_analysis(source, CERTAINTY if certainty is None else certainty, margin, width)


def refuse_certainty(certainty: float | None) -> None:
    """Raise ``DataError`` if a certainty is given for a race, which has its own."""
    if certainty is not None:
        raise DataError("a race has its own; leave it out", certainty=certainty)


def _describe_analysis(posterior: Posterior, certainty: float, margin: float, width: float) -> str:
    """Return a methods paragraph for an analysis of data by one posterior."""
    found = posterior.verdict(certainty, margin=margin, width=width)
    n_dominated = sum(one.kind == "dominated" for one in found.verdicts)
    replaceable = (
        f"An algorithm is replaceable if, with probability {certainty:g} or more "
        f"{'by duels of resampled instances' if posterior.places else 'by the posterior'}, "
        f"another one {describe_replacement(margin, width)}."
    )
    n, instances = len(found.algorithms), posterior.instances
    sentences = [
        describe_comparison("compared", n, instances, found.times.tolist(), found.clock),
        *describe_runs(posterior.ends, instances),
        *posterior.diagnostics.order_notes,
        describe_model(posterior),
        replaceable,
        "These probabilities are for data that are analysed once, not again while they grow.",
        describe_result(found.verdicts),
    ]
    if n_dominated:
        sentences.append(
            "At least one algorithm is wrongly called replaceable with posterior probability "
            f"{format_share(found.mistaken)}."
        )
    if problems := posterior.diagnostics.problems:
        sentences.append(f"The posterior is not trusted: {'; '.join(problems)}.")
    return " ".join(sentences)


def _describe_race(race: Race) -> str:
    """Return a methods paragraph for a race."""
    status, question, posterior = race.status, race.question, race.posterior
    epsilon = getattr(question, "epsilon", None)
    model = "" if posterior is None else describe_model(posterior)
    n, instances = len(status.verdicts), status.counts.instances
    sentences = [
        describe_comparison("raced", n, instances, race.times, status.setup.clock),
        question.describe_test(),
        "" if epsilon is None else describe_equivalence(epsilon),
        question.guarantee,
        model,
        _describe_course(status),
        _describe_outcome(status),
    ]
    return " ".join(filter(None, sentences))


def _describe_course(status: RaceStatus) -> str:
    """Return sentences on the cost of the race and on why it ended."""
    time = format_duration(status.spent.time, status.setup.clock)
    runs = format_count(status.spent.runs, "run")
    rounds = format_count(status.counts.rounds, "round")
    sentences = [f"The race made {runs} in {rounds} (total time {time})."]
    if status.ended == "resolved":
        known = "the relation of every pair was known" if status.is_about_set else "it was settled"
        sentences.append(f"It ended when {known}.")
    elif status.ended:
        n_open = status.counts.open_pairs
        stayed = f": {format_count(n_open, 'pair')} stayed open" if n_open else ""
        sentences.append(
            f"It ended before all pairs were settled ({escape_text(status.ended)}){stayed}."
        )
    else:
        sentences.append("It has not ended.")
    if status.counts.withdrawn:
        sentences.append(f"{format_count(status.counts.withdrawn, 'run')} were withdrawn.")
    return " ".join(sentences)


def _describe_outcome(status: RaceStatus) -> str:
    """Return sentences on the result of the race, in the terms of its question."""
    if status.is_about_set:
        return describe_result(status.verdicts)
    kinds = ("chosen", "not chosen", "passed", "failed", "undecided", "removed")
    named = {kind: [one.algorithm for one in status.verdicts if one.kind == kind] for kind in kinds}
    sentences = [
        f"{kind.capitalize()}: {format_list(names, MAX_NAMES)}."
        for kind, names in named.items()
        if names
    ]
    if status.chosen and not named["chosen"]:
        chosen = format_list(status.chosen, MAX_NAMES)
        sentences.insert(0, f"The choice so far, without the required certainty: {chosen}.")
    return " ".join(sentences)
