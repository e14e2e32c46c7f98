"""The rows of the report's table, and the ribbons above it, as data for the page."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from polarbear._text import escape_text, format_share
from polarbear.data.run_ends import RunEnds
from polarbear.inference.findings import VERDICT_WORDS, Findings, Sentence, describe_algorithms
from polarbear.inference.posterior import Posterior
from polarbear.inference.ribbon import Ribbon
from polarbear.inference.verdicts import Verdict
from polarbear.racing.race import Race

TONES = {
    **dict.fromkeys(("member", "equivalent", "chosen", "passed", "worth running"), "good"),
    **dict.fromkeys(("undecided",), "doubt"),
    **dict.fromkeys(("failed", "removed"), "bad"),
}
"""The tone of a badge by the kind of its verdict; of others it is plain."""

MAX_LETTERS = 24
"""The most letters of the name of a rival in a row."""

MIN_NEAR = 0.9
"""From this probability on, the badge of an undecided algorithm says what it lacks."""


def collect_ribbons(posterior: Posterior) -> dict[str, Any]:
    """Return the ribbon of a posterior on a log axis, if its times have one, and on a linear one.

    >>> import polarbear as pb
    >>> times = np.array([0.0, 1.0])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(2), 20, times=times))
    >>> collect_ribbons(posterior)["log"] is None
    True
    """
    best, can_be_log = posterior.prob_best(), posterior.times[0] > 0
    return {
        scale: _to_plain(
            Ribbon.of(posterior.algorithms, posterior.times, posterior.clock, best, scale == "log")
        )
        if scale == "linear" or can_be_log
        else None
        for scale in ("log", "linear")
    }


def _to_plain(ribbon: Ribbon) -> dict[str, Any]:
    return {
        "edges": ribbon.edges.tolist(),
        "top": ribbon.top.tolist(),
        "probability": ribbon.probability.round(4).tolist(),
        "leads": [one._asdict() for one in ribbon.leads],
        "says": ribbon.describe(),
    }


def collect_rows(
    posterior: Posterior | None, race: Race | None, certainty: float, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return a row for each algorithm: badge, when it is best, and how its runs ended.

    The verdicts are those of the race, if there is one, else those of the posterior.
    """
    found = posterior.verdict(certainty) if posterior else None
    verdicts = {one.algorithm: one for one in (found.verdicts if found else ())}
    sentences = {one.algorithm: one for one in describe_algorithms(found)} if found else {}
    if race is not None and race.rounds:
        verdicts = {one.algorithm: one for one in race.verdicts()}
        sentences = {one.algorithm: one for one in describe_race_verdicts(race, found)}
    ribbon = None
    if posterior:
        ribbon = Ribbon.of(
            posterior.algorithms, posterior.times, posterior.clock, posterior.prob_best()
        )
    worth = posterior.prob_in_pareto() if posterior else {}
    ends = {one.algorithm: one for one in posterior.ends} if posterior else {}
    return [
        {
            "text": sentences[name].text if name in sentences else "",
            **_describe_verdict(verdicts.get(name), worth.get(name), certainty),
            "when": _describe_when(name, verdicts.get(name), found, ribbon),
            **_count_runs(name, ends.get(name), race),
        }
        for name in names
    ]


def _describe_verdict(
    verdict: Verdict | None, worth: float | None, certainty: float
) -> dict[str, Any]:
    """Return the badge of a verdict, its tone, and P(worth running)."""
    if verdict is None:
        return {"badge": "not compared", "tone": "", "probability": worth}
    # The verdict of a race has a probability of its own, by the duels that decide it.
    by_duels = verdict.margin is not None and verdict.probability is not None
    if verdict.probability is not None and (worth is None or by_duels):
        out = verdict.kind in ("dominated", "replaceable")
        worth = 1 - verdict.probability if out else verdict.probability
    badge = VERDICT_WORDS.get(verdict.kind, verdict.kind)
    sure, needed = format_share(worth or 0.0), format_share(certainty)
    if verdict.kind == "undecided" and worth is not None:
        if by_duels:
            badge = (
                "likely worth running" if worth > 0.8 else "likely drop" if worth < 0.2 else "open"
            )
        elif max(worth, 1 - worth) >= certainty:  # the posterior is sure, the race has no proof yet
            badge = f"likely {'worth running' if worth > 0.5 else 'drop'}, not proven"
        elif worth >= MIN_NEAR and sure != needed:
            badge = f"{sure}, needs {needed}"
    return {"badge": badge, "tone": TONES.get(verdict.kind, ""), "probability": worth}


def _describe_when(
    name: str, verdict: Verdict | None, found: Findings | None, ribbon: Ribbon | None
) -> str:
    """Return when to run an algorithm, in a few words; if never, who is ahead of it."""
    if verdict is not None and verdict.kind == "removed":
        return escape_text(verdict.why).split("\n")[0][:60]
    if verdict is not None and verdict.kind == "dominated" and verdict.margin is not None:
        return f"never: {_shorten(verdict.rival or '')} replaces it"
    if found is None or ribbon is None or name not in found.algorithms:
        by = verdict.rival if verdict else None
        return f"{_shorten(by)} is always ahead" if by else ""
    code = found.algorithms.index(name)
    when = ribbon.describe_when(code)
    if when:
        return when
    ahead = found.everywhere[:, code]
    rivals = np.flatnonzero(found.dominates[:, code])
    rival = int(np.argmax(ahead))
    by = _shorten(found.algorithms[rival])
    if verdict is not None and not verdict.is_candidate and len(rivals):
        rest = len(rivals) - 1
        return (
            f"never: {by} and {rest} more are always ahead"
            if rest
            else (f"never: {by} is always ahead")
        )
    if ahead[rival] < 0.01:
        return "never first"
    return f"never first; {by} is always ahead: {format_share(float(ahead[rival]))}"


def _shorten(name: str) -> str:
    text = escape_text(name)
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 1]}…"


def _count_runs(name: str, ends: RunEnds | None, race: Race | None) -> dict[str, Any]:
    """Return how the runs of an algorithm ended, with a warning if many of them failed."""
    if ends is not None:
        warning = f"{ends.describe_failures()}." if ends.fails_often else ""
        counts = dict(ends.counts)
        return {"runs": ends.n_runs, "failed": ends.n_failed, "counts": counts, "warning": warning}
    runs = race.status.runs.made.get(name, 0) if race else 0
    failed = race.status.runs.failed.get(name, 0) if race else 0
    counts = {"failed": failed, "ended well": runs - failed} if failed else {"ended well": runs}
    return {"runs": runs, "failed": failed, "counts": counts, "warning": ""}


def describe_race_verdicts(race: Race, found: Findings | None) -> list[Sentence]:
    """Return a sentence with the verdict of a race about each algorithm.

    A posterior that is analysed once may make claims that the race, which tests after every round,
    does not make. Where both agree the sentence is that of the posterior, which also says when the
    algorithm is the best. Where they differ, the claim of the posterior follows as such.
    """
    if not race.rounds:
        return []
    by_posterior = {one.algorithm: one for one in found.verdicts} if found else {}
    texts = {one.algorithm: one.text for one in describe_algorithms(found)} if found else {}
    sentences: list[Sentence] = []
    for verdict in race.verdicts():
        name = verdict.algorithm
        other = by_posterior.get(name)
        agree = other is not None and (other.kind, other.rival) == (verdict.kind, verdict.rival)
        text = texts[name] if agree else f"{verdict}."
        if verdict.margin is not None:  # by the duels alone, which a model may not fit
            text = f"{verdict}."
        elif other is not None and other.kind != verdict.kind:
            text += f" By the posterior of the same runs alone, {texts[name]}"
        sentences.append(Sentence(name, verdict.kind, text))
    return sentences
