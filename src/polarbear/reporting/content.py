"""``make_document``: collect the content of a report's page as plain data."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear._text import (
    capitalise,
    choose_precision,
    format_count,
    format_range,
    format_unit,
    round_time,
)
from polarbear.data.array_files import pack_array
from polarbear.data.colours import MAX_SEPARATED, Cast
from polarbear.data.instance_basis import ClassBasis
from polarbear.data.losses import Losses
from polarbear.data.run import FAILED
from polarbear.data.run_ends import format_counts, sum_counts
from polarbear.data.time_axis import is_log_axis
from polarbear.errors import DataError
from polarbear.inference.findings import Findings, describe_pareto_set
from polarbear.inference.instance_posterior import InstancePosterior
from polarbear.inference.pairs import find_crossings, tabulate_pairs
from polarbear.inference.posterior import Posterior
from polarbear.inference.versions import software_versions
from polarbear.plots.arguments import (
    PosteriorSource,
    get_cast,
    get_posterior,
    get_times,
)
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.racing.questions.question import Question
from polarbear.racing.race import Race
from polarbear.reporting.algorithm_rows import collect_ribbons, collect_rows
from polarbear.reporting.history import describe_end, describe_origin, describe_race
from polarbear.reporting.packing import find_candidates, pack_draws, pack_shares
from polarbear.selection.more_time import ValueOfTime

DOCUMENT_KIND, DOCUMENT_VERSION = "polarbear report", 1

MIN_SHOWN_BEST = 0.05
"""An algorithm that is the best somewhere with at least this probability is in colour."""

MAX_PAIRS = 1000
"""The most pairs in the table; of more, those that decide the Pareto set are kept."""

Floats = NDArray[np.float64]


def make_document(
    subject: PosteriorSource | InstancePosterior,
    *,
    question: Question | None = None,
    certainty: float | None = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
    losses: Losses | None = None,
    more_time: ValueOfTime | None = None,
    refits: int = 0,
) -> dict[str, Any]:
    """Collect everything that the report of a posterior or a race shows, as data for JSON.

    Parameters
    ----------
    subject
        A posterior, a race, or a result of ``race`` or ``replay``, also before the first decision.
        A posterior by class or by features is shown for the instances in the data together, with a
        section on its classes or features.
    question
        By which rule statements are made; by default that of the race, or ``ParetoSet()``.
    certainty
        The required certainty of statements; by default that of the question.
    title
        The title of the page.
    provenance
        More lines for the last section: the origin of the data, the command.
    losses
        How much is lost, for a section of its own.
    more_time
        When more time stops paying, for a sentence below the answer.
    refits
        The most rounds of a race whose posterior is fitted again, to show how probable it was
        that each algorithm is dominated.

    Examples
    --------
    >>> import numpy as np
    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(3), 40))
    >>> content = make_document(posterior, title="Three algorithms")
    >>> content["title"], content["algorithms"]
    ('Three algorithms', ['a1', 'a2', 'a3'])
    """
    by_instance: list[str] = []
    classes: dict[str, Any] | None = None
    if isinstance(subject, InstancePosterior):
        if isinstance(subject.basis, ClassBasis) and len(subject.basis.classes) > 1:
            classes = _collect_classes(subject)
        else:
            by_instance = subject.verdict(0.95 if certainty is None else certainty).splitlines()
        subject = subject.population()
    if not isinstance(subject, Posterior | Race):
        raise DataError(
            f"a report takes a posterior or a race, not {type(subject).__name__}: "
            "make a posterior of runs with fit(...)"
        )
    posterior = get_posterior(subject)
    racing = None if isinstance(subject, Posterior) else subject.in_memory()
    question = question or (ParetoSet() if racing is None else racing.question)
    certainty = question.certainty if certainty is None else certainty
    found = replace(question, certainty=certainty).read_posterior(posterior) if posterior else None
    if racing is not None or found is None:
        cast = get_cast(subject, certainty)
    else:
        kept = [one.algorithm for one in found.verdicts if one.is_candidate]
        cast = Cast.of(found.algorithms, kept)
    times, clock = get_times(subject)
    names = [*(posterior.algorithms if posterior else ())]
    names += [name for name in cast.names if name not in names]
    provenance_lines = {
        **_describe_origin(posterior, certainty),
        **(describe_origin(racing) if racing else {}),
        **(provenance or {}),
    }
    content: dict[str, Any] = {
        "kind": DOCUMENT_KIND,
        "version": DOCUMENT_VERSION,
        "title": title or ("Which algorithm to run" if racing is None else "A race of algorithms"),
        "facts": _collect_facts(names, posterior, racing, times, clock),
        "certainty": certainty,
        "clock": format_unit(clock, "time"),
        "digits": choose_precision(clock),
        "algorithms": names,
        "pareto": [names.index(name) for name in cast.pareto],
        "looks": _collect_styles(names, cast, posterior),
        "verdict": _collect_verdict(posterior, found, racing, more_time),
        "rows": collect_rows(posterior, found, racing, certainty, names),
        "by_instance": by_instance,
        "classes": classes,
        "losses": losses and _collect_losses(losses, names),
        "race": describe_race(racing, names, refits) if racing else None,
        "ended": racing.ended if racing else None,
        "provenance": provenance_lines,
        **(_collect_ratings(posterior, certainty) if posterior else {}),
    }
    content["identity"] = compute_digest(json.dumps(content, sort_keys=True).encode())
    content["made"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return content


def _collect_facts(
    names: Sequence[str],
    posterior: Posterior | None,
    racing: Race | None,
    times: Floats,
    clock: str,
) -> list[tuple[str, str]]:
    """Return the facts of the first line, each with its tone: "bad" if runs failed."""
    facts = [(format_count(len(names), "algorithm"), "")]
    if posterior:
        if posterior.instances:  # not known of a posterior made by hand
            facts.append((format_count(posterior.instances, "instance"), ""))
        n_runs = sum(one.n_runs for one in posterior.ends)
        n_failed = sum(one.n_failed for one in posterior.ends)
        counts = {k: n for k, n in sum_counts(posterior.ends).items() if k in FAILED}
        if racing:  # also runs of those who left, and attempts that were made again
            n_runs, n_failed = racing.status.n_runs, sum(racing.status.runs.failed.values())
        if n_failed:
            is_whole = sum(counts.values()) == n_failed
            how = f"failed ({format_counts(counts)})" if is_whole else "failed"
            if is_whole and len(counts) == 1:
                how = next(iter(counts))
            facts.append((f"{n_failed:,} of {n_runs:,} runs {how}", "bad"))
        elif n_runs:
            facts.append((f"{format_count(n_runs, 'run')}, none failed", ""))
    first, last = (round_time(float(times[k]), clock, 3) for k in (0, -1))
    return [*facts, (format_range(first, last, clock), "")]


def _collect_verdict(
    posterior: Posterior | None,
    found: Findings | None,
    racing: Race | None,
    more_time: ValueOfTime | None,
) -> dict[str, Any]:
    """Return what a reader must know first, and the state of a race or of the set in a line."""
    # What failures did is said beside the answer, where it is about the algorithm to run.
    failures = {f"{one.describe_failures()}." for one in posterior.ends} if posterior else set()
    cautions = [text for text in found.cautions if text not in failures] if found else []
    summary = describe_pareto_set(found) if found else ""
    if racing is not None:
        summary = f"{capitalise(describe_end(racing.status))}."
    sentence = f"{capitalise(str(more_time))}." if more_time else ""
    return {"cautions": cautions, "summary": summary, "more_time": sentence}


def _collect_classes(subject: InstancePosterior) -> dict[str, Any]:
    """Return the ribbon and the mean ratings on each class, and P(ratings differ)."""
    counts = subject.count_by_class()
    return {
        "differ": 1 - float(np.mean(subject.tau == 0)),
        "each": [
            {
                "name": name,
                "instances": counts[name],
                "ribbons": collect_ribbons(posterior),
                "mean": pack_array(posterior.mean()),
            }
            for name, posterior in subject.by_class().items()
        ],
    }


def _collect_losses(losses: Losses, names: Sequence[str]) -> dict[str, Any]:
    """Return the losses as a table, and the median and the worst tenth as curves (n, T)."""
    known = {name: k for k, name in enumerate(names)}

    def to_curves(values: Floats) -> list[list[float | None]]:
        return [[x if np.isfinite(x) else None for x in curve] for curve in values.T.tolist()]

    return {
        "title": losses.title,
        "head": losses.headings(),
        "rows": losses.rows(),
        "times": losses.times.tolist(),
        "algorithms": [known.get(name, -1) for name in losses.algorithms],
        "median": to_curves(losses.quantile(0.5)),
        "worst": to_curves(losses.worst()),
    }


def _collect_styles(
    names: Sequence[str], cast: Cast, posterior: Posterior | None
) -> list[dict[str, Any]]:
    """Return the colour and dashes of each algorithm, the same as in figures.

    Of many algorithms, those are grey that are neither in the Pareto set nor ever likely the best.
    """
    shown = names
    if len(names) > MAX_SEPARATED and posterior:
        likely = posterior.prob_best().max(axis=0) >= MIN_SHOWN_BEST
        best = {name for name, one in zip(posterior.algorithms, likely, strict=True) if one}
        shown = [name for name in names if name in best or name in cast.pareto]
    styles = cast.highlight(shown).styles()
    return [
        {"light": look.colour, "dark": look.on_dark, "dash": look.dash}
        for look in (styles[name] for name in names)
    ]


def _collect_ratings(posterior: Posterior, certainty: float) -> dict[str, Any]:
    """Return the ratings, draws, pairs and diagnostics of a posterior as data for JSON."""
    ratings = posterior.ratings
    everywhere = posterior.prob_dominates()
    lower, upper = np.quantile(ratings, [0.025, 0.975], axis=0)
    diagnostics = posterior.diagnostics
    return {
        "ratings": {
            "times": posterior.times.tolist(),
            "mean": pack_array(ratings.mean(axis=0, dtype=np.float64)),
            "lower": pack_array(lower),
            "upper": pack_array(upper),
            "best": pack_shares(posterior.prob_best()),
        },
        "is_log": is_log_axis(posterior.times),
        "ribbons": collect_ribbons(posterior),
        "draws": pack_draws(ratings, find_candidates(ratings, everywhere)),
        "pairs": _collect_pairs(posterior, certainty),
        "diagnostics": {
            "trusted": diagnostics.trusted,
            "measured": {name: f"{value:.3g}" for name, value in diagnostics.measured.items()},
            "problems": list(diagnostics.problems),
            "notes": list(diagnostics.notes),
        },
    }


def _collect_pairs(posterior: Posterior, certainty: float) -> dict[str, Any]:
    """Return the table of pairs: relations, probabilities and crossings."""
    table = tabulate_pairs(posterior, certainty)
    first, second = np.triu_indices(len(posterior.algorithms), 1)
    chosen = _choose_pairs(posterior, certainty, first, second)
    names, ahead = posterior.algorithms, posterior.prob_better()
    first, second = first[chosen], second[chosen]
    crossings = {
        str(row): [
            {
                "until": crossing.until,
                "since": crossing.since,
                "up": crossing.then == names[first[row]],
                "probability": round(crossing.probability, 5),
            }
            for crossing in find_crossings(
                posterior, names[first[row]], names[second[row]], certainty
            )
        ]
        for row, k in enumerate(chosen.tolist())
        if table["relation"][k] == "crosses"
    }
    return {
        "first": first.tolist(),
        "second": second.tolist(),
        "relation": [table["relation"][k] for k in chosen.tolist()],
        "everywhere": pack_shares(np.array(table["everywhere"])[chosen]),
        "reversed": pack_shares(np.array(table["everywhere_reversed"])[chosen]),
        "ahead": pack_shares(ahead[:, first, second].T),
        "crossings": crossings,
        "left_out": len(table["first"]) - len(chosen),
    }


def _choose_pairs(
    posterior: Posterior, certainty: float, first: NDArray[np.intp], second: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Choose the pairs to show: all or, if too many, those of Pareto members and of dominators."""
    if len(first) <= MAX_PAIRS:
        return np.arange(len(first))
    members = set(posterior.pareto(certainty))
    is_member = np.array([name in members for name in posterior.algorithms])
    dominator = np.argmax(posterior.prob_dominates(), axis=0)
    inside = is_member[first] & is_member[second]
    by_second = ~is_member[first] & (dominator[first] == second)
    by_first = ~is_member[second] & (dominator[second] == first)
    order = np.argsort(~inside, kind="stable")
    return np.sort(order[(inside | by_first | by_second)[order]][:MAX_PAIRS])


def _describe_origin(posterior: Posterior | None, certainty: float) -> dict[str, str]:
    """Return the software, the method and the digest of a posterior, as texts by label."""
    versions = software_versions()
    origin = {"software": ", ".join(f"{name} {number}" for name, number in versions.items())}
    if posterior is None:
        return origin
    arrays = (posterior.times, posterior.draws, posterior.weight)
    content = [json.dumps(posterior.algorithms).encode(), *(array.tobytes() for array in arrays)]
    return {
        **origin,
        "method": f"{posterior.method}, {posterior.prior}",
        "evidence": f"{posterior.evidence}, of {format_count(posterior.instances, 'instance')}",
        "certainty": f"certainty = {certainty:g}",
        "draws": f"{len(posterior.draws):,}",
        "posterior (SHA-256)": compute_digest(*content),
    }


def compute_digest(*parts: bytes) -> str:
    """Compute the SHA-256 digest of all parts together."""
    sha256 = hashlib.sha256()
    for part in parts:
        sha256.update(part)
    return sha256.hexdigest()
