"""What is on the page, as plain data: ``document``."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear._text import choose_precision, format_count, format_range, format_unit
from polarbear.errors import DataError
from polarbear.inference.posterior import Posterior
from polarbear.inference.verdict import close, how_many_stay, kept, sentences
from polarbear.inference.versions import software_versions
from polarbear.plots.arguments import (
    PosteriorSource,
    RaceSource,
    ReadOnce,
    get_cast,
    get_posterior,
    get_race,
    get_times,
)
from polarbear.plots.colours import Cast
from polarbear.racing.race import Race
from polarbear.racing.raced import Raced
from polarbear.racing.replay import Replay
from polarbear.reporting.history import history, origin, stands
from polarbear.reporting.packing import candidates, packed, packed_draws, shares

KIND, VERSION = "polarbear report", 1

MOST_PAIRS = 1000
"""The most pairs in the table; of more, those that matter for membership."""

Floats = NDArray[np.float64]


def document(
    subject: PosteriorSource,
    *,
    alpha: float | None = None,
    title: str | None = None,
    provenance: Mapping[str, str] | None = None,
    refits: int = 0,
) -> dict[str, Any]:
    """Everything that the page of a posterior or a race draws, as numbers and text for JSON.

    Parameters
    ----------
    subject
        A posterior, a race, or what ``race`` and ``replay`` return; also before the first decision.
    alpha
        How sure to be of what is said; by default what the race's rules say, or 0.99.
    title
        What the page is called.
    provenance
        More lines for the last section: where the data are from, which command made this.
    refits
        Of so many rounds of a race the posterior is made again, which takes its time, to show how
        close everybody was to being dominated.

    Examples
    --------
    >>> import numpy as np
    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(3), 40))
    >>> found = document(posterior, title="Three algorithms")
    >>> found["title"], found["algorithms"]
    ('Three algorithms', ['a1', 'a2', 'a3'])
    """
    if not isinstance(subject, Posterior | Race | Raced):
        raise DataError(
            f"a report is made of a posterior or a race, not of {type(subject).__name__}: "
            "fit(...) makes a posterior of runs"
        )
    posterior = get_posterior(subject)
    racing = None if isinstance(subject, Posterior) else subject
    if isinstance(racing, Raced) and not isinstance(racing, Replay):
        racing = ReadOnce(racing)
    if alpha is None:
        alpha = 0.99 if racing is None else get_race(racing).rules.alpha
    cast = get_cast(subject, alpha)
    times, clock = get_times(subject)
    names = [*(posterior.algorithms if posterior else ())]
    names += [name for name in cast.names if name not in names]
    made_of = {
        **_origin(posterior, alpha),
        **(origin(racing) if racing else {}),
        **(provenance or {}),
    }
    content: dict[str, Any] = {
        "kind": KIND,
        "version": VERSION,
        "title": title or ("Which algorithm to run" if racing is None else "A race of algorithms"),
        "about": _about(names, posterior, times, clock),
        "alpha": alpha,
        "clock": format_unit(clock, "time"),
        "digits": choose_precision(clock),
        "algorithms": names,
        "pareto": [names.index(name) for name in cast.pareto],
        "looks": _looks(names, cast),
        "verdict": _verdict(posterior, racing, alpha, names),
        "race": history(racing, names, refits) if racing else None,
        "ended": get_race(racing).ended if racing else None,
        "provenance": made_of,
        **(_rated(posterior, alpha) if posterior else {}),
    }
    content["identity"] = digest(json.dumps(content, sort_keys=True).encode())
    content["made"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return content


def _about(names: Sequence[str], posterior: Posterior | None, times: Floats, clock: str) -> str:
    """What this is about, in a line."""
    on = (
        f"compared on {format_count(posterior.instances, 'instance')}"
        if posterior
        else "to be compared"
    )
    where = f"at {format_count(len(times), 'time')}: {format_range(times[0], times[-1], clock)}"
    return f"{format_count(len(names), 'algorithm')} {on} {where}."


def _verdict(
    posterior: Posterior | None, racing: RaceSource | None, alpha: float, names: list[str]
) -> dict[str, Any]:
    """Sentences: what the posterior says, and of those whom a race left behind what it said."""
    facts = posterior.facts(alpha) if posterior else None
    said = sentences(facts) if facts else []
    spoken = [
        {"algorithm": names.index(one.algorithm), "status": one.status, "text": one.text}
        for one in said
    ]
    open_ = close(facts) if facts else []
    if racing is None:
        return {"sentences": spoken, "summary": kept(facts) if facts else "", "close": open_}
    race = get_race(racing)
    for name in names[len(spoken) :] if race.rounds else ():
        found = race.verdict(name)
        spoken.append({"algorithm": names.index(name), "status": found.status, "text": f"{found}."})
    state = stands(racing)
    said_last = f"{state[:1].upper()}{state[1:]}."
    if race.rounds:
        said_last = f"{how_many_stay(len(race.pareto), len(names))} {said_last}"
    return {"sentences": spoken, "summary": said_last, "close": open_}


def _looks(names: Sequence[str], cast: Cast) -> list[dict[str, Any]]:
    """Colours and dashes, as in the figures."""
    styles = cast.styles()
    return [
        {"light": look.colour, "dark": look.on_dark, "dash": look.dash}
        for look in (styles[name] for name in names)
    ]


def _rated(posterior: Posterior, alpha: float) -> dict[str, Any]:
    """All that follows from a posterior."""
    ratings = posterior.ratings
    everywhere = posterior.better_everywhere_matrix()
    lower, upper = np.quantile(ratings, [0.025, 0.975], axis=0)
    said = posterior.diagnostics
    return {
        "ratings": {
            "times": posterior.times.tolist(),
            "mean": packed(ratings.mean(axis=0, dtype=np.float64)),
            "lower": packed(lower),
            "upper": packed(upper),
            "best": shares(posterior.best()),
        },
        "draws": packed_draws(ratings, candidates(ratings, everywhere)),
        "pairs": _pairs(posterior, alpha),
        "diagnostics": {
            "trusted": said.trusted,
            "measured": {name: f"{value:.3g}" for name, value in said.measured.items()},
            "problems": list(said.problems),
            "notes": list(said.notes),
        },
    }


def _pairs(posterior: Posterior, alpha: float) -> dict[str, Any]:
    """The table of pairs: who is ahead of whom, how surely and when."""
    table = posterior.pairs(alpha)
    first, second = np.triu_indices(len(posterior.algorithms), 1)
    wanted = _that_matter(posterior, alpha, first, second)
    names, ahead = posterior.algorithms, posterior.better_matrix()
    first, second = first[wanted], second[wanted]
    crossings = {
        str(row): [
            {
                "until": found.until,
                "since": found.since,
                "up": found.then == names[first[row]],
                "probability": round(found.probability, 5),
            }
            for found in posterior.crossings(names[first[row]], names[second[row]], alpha)
        ]
        for row, k in enumerate(wanted.tolist())
        if table["relation"][k] == "crosses"
    }
    return {
        "first": first.tolist(),
        "second": second.tolist(),
        "relation": [table["relation"][k] for k in wanted.tolist()],
        "everywhere": shares(np.array(table["everywhere"])[wanted]),
        "reversed": shares(np.array(table["everywhere_reversed"])[wanted]),
        "ahead": shares(ahead[:, first, second].T),
        "crossings": crossings,
        "left_out": len(table["first"]) - len(wanted),
    }


def _that_matter(
    posterior: Posterior, alpha: float, first: NDArray[np.intp], second: NDArray[np.intp]
) -> NDArray[np.intp]:
    """All pairs; if they are too many, of those who stay, and of the others with who beats them."""
    if len(first) <= MOST_PAIRS:
        return np.arange(len(first))
    kept = set(posterior.pareto(alpha))
    stays = np.array([name in kept for name in posterior.algorithms])
    beater = np.argmax(posterior.better_everywhere_matrix(), axis=0)
    inside = stays[first] & stays[second]
    by_second = ~stays[first] & (beater[first] == second)
    by_first = ~stays[second] & (beater[second] == first)
    order = np.argsort(~inside, kind="stable")
    return np.sort(order[(inside | by_first | by_second)[order]][:MOST_PAIRS])


def _origin(posterior: Posterior | None, alpha: float) -> dict[str, str]:
    """Where it comes from, as far as the posterior knows."""
    versions = software_versions()
    found = {"software": ", ".join(f"{name} {number}" for name, number in versions.items())}
    if posterior is None:
        return found
    arrays = (posterior.times, posterior.draws, posterior.weight)
    content = [json.dumps(posterior.algorithms).encode(), *(array.tobytes() for array in arrays)]
    return {
        **found,
        "method": f"{posterior.method}, {posterior.prior}",
        "evidence": f"{posterior.evidence}, of {format_count(posterior.instances, 'instance')}",
        "certainty": f"alpha = {alpha:g}",
        "draws": f"{len(posterior.draws):,}",
        "posterior (SHA-256)": digest(*content),
    }


def digest(*parts: bytes) -> str:
    """A fingerprint."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()
