"""The rows of the report's table, and the ribbons above it, as data for the page."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from polarbear._text import escape_text, format_share
from polarbear.data.run_ends import RunEnds
from polarbear.inference.findings import Findings, Sentence, describe_algorithms, word_of
from polarbear.inference.posterior import Posterior
from polarbear.inference.ribbon import Ribbon
from polarbear.inference.verdicts import MIN_LIKELY, Verdict
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
    posterior: Posterior | None,
    found: Findings | None,
    race: Race | None,
    certainty: float,
    names: Sequence[str],
) -> list[dict[str, Any]]:
    """Return a row for each algorithm: badge, when it is best, and how its runs ended.

    The verdicts are those of the race, if there is one, else those ``found`` by the posterior.
    """
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
    worth = dict(zip(found.algorithms, found.worth.tolist(), strict=True)) if found else {}
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
    if worth is None or by_duels:
        worth = verdict.prob_worth
    badge = word_of(verdict)
    sure, needed = format_share(worth or 0.0), format_share(certainty)
    if verdict.kind == "undecided" and worth is not None and not by_duels:
        if max(worth, 1 - worth) >= certainty:  # the posterior is sure, the race has no proof yet
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
    code = found.algorithms.index(name) if found and name in found.algorithms else None
    when = ribbon.describe_when(code) if ribbon and code is not None else ""
    if verdict is not None and verdict.kind == "dominated" and verdict.margin is not None:
        rival = _shorten(verdict.rival or "")
        return f"{when}, but {rival} is as good" if when else f"never: {rival} replaces it"
    if found is None or ribbon is None or code is None:
        by = verdict.rival if verdict else None
        return f"{_shorten(by)} is always ahead" if by else ""
    if when:
        return when
    ahead = found.replaces[:, code]
    rivals = np.flatnonzero(found.is_replaced[:, code])
    rival = int(np.argmax(ahead))
    by = _shorten(found.algorithms[rival])
    by_margin = any(one.margin is not None for one in found.verdicts)
    how = "replaces it" if by_margin else "is always ahead"
    if verdict is not None and not verdict.is_candidate and len(rivals):
        rest = len(rivals) - 1
        many = "replace it" if by_margin else "are always ahead"
        return f"never: {by} and {rest} more {many}" if rest else f"never: {by} {how}"
    if ahead[rival] < 0.01:
        return "never first"
    return f"never first; {by} {how}: {format_share(float(ahead[rival]))}"


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
    does not make; and it rates by a model, where the race counts duels. Where it claims something
    else, its sentence follows as such. Where both agree on single times, the sentence is that of
    the posterior, which also says when the algorithm is the best.
    """
    if not race.rounds:
        return []
    by_posterior = {one.algorithm: one for one in found.verdicts} if found else {}
    texts = {one.algorithm: one.text for one in describe_algorithms(found)} if found else {}
    sentences: list[Sentence] = []
    for verdict in race.verdicts():
        name, text = verdict.algorithm, f"{verdict}."
        other = by_posterior.get(name)
        if other is not None and verdict.margin is None:
            agree = (other.kind, other.rival) == (verdict.kind, verdict.rival)
            text = texts[name] if agree else text
        if other is not None and differ(verdict, other):
            text += f" By the posterior of the same runs alone, {texts[name]}"
        sentences.append(Sentence(name, verdict.kind, text))
    return sentences


def differ(verdict: Verdict, other: Verdict) -> bool:
    """Return whether two verdicts about an algorithm claim different things.

    With a margin, the probability of a race is by duels. The two differ then where one finds likely
    what the other finds unlikely, or where the second is certain of what the first leaves open.

    >>> differ(Verdict("a", "member", 0.99, margin=0.1), Verdict("a", "undecided", 0.7, margin=0.1))
    False
    >>> differ(Verdict("a", "member", 0.99, margin=0.1), Verdict("a", "undecided", 0.1, margin=0.1))
    True
    """
    if verdict.margin is None:
        return verdict.kind != other.kind
    ours, theirs = _find_side(verdict), _find_side(other)
    if ours is None or theirs is None:
        return False
    if "equivalent" in (verdict.kind, other.kind):
        return min(ours, theirs) < 0
    is_certain = "undecided" not in (verdict.kind, other.kind)
    return ours * theirs < 0 or (ours != theirs and (is_certain or other.kind != "undecided"))


def _find_side(verdict: Verdict) -> int | None:
    """Return -1 for what is (likely) replaceable, 1 for what is worth running, 0 if it is open."""
    if verdict.kind == "undecided" and verdict.probability is not None:
        return int(verdict.probability > MIN_LIKELY) - int(verdict.names_rival)
    return {"dominated": -1, "member": 1, "equivalent": 1}.get(verdict.kind)
