"""Print the answer of a command: as text, or as JSON with its provenance."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polarbear.cli.activity import activity
from polarbear.cli.inputs import detect_kind, list_sources
from polarbear.cli.output import escape_output, format_command, format_json, hide_passwords, pick

if TYPE_CHECKING:
    from polarbear.data.runs import Runs
    from polarbear.inference.posterior import Posterior
    from polarbear.selection.ratings import RatingSource


def print_answer(
    arguments: argparse.Namespace,
    text: object,
    plain: Mapping[str, Any],
    *,
    posterior: "RatingSource | None" = None,
    runs: "Runs | None" = None,
    model: Mapping[str, str] | None = None,
) -> None:
    """Print the answer as text or, with ``--json``, as one JSON object with its provenance."""
    if arguments.json:
        origin = collect_provenance(arguments, posterior=posterior, runs=runs, model=model)
        text = format_json({**plain, "provenance": origin})
    else:
        text = escape_output(text)
    activity.end()
    print(text)


CLEAR_CHOICE = 0.6
"""The probability from which on one algorithm is named as the choice, as in the report."""

MAX_NAMED = 3


def format_choice(posterior: "Posterior") -> str:
    """Return what to run if every budget is as likely, and how sure that is, in a sentence."""
    import polarbear
    from polarbear._text import escape_text, format_range, format_share
    from polarbear.data.time_axis import is_log_axis

    times, clock = posterior.times, posterior.clock
    is_log = is_log_axis(times)
    scale = "log" if is_log else "linear"
    choices = polarbear.select(posterior, polarbear.preferences.between(scale=scale)).choices
    first = choices[0]
    span = format_range(times[0], times[-1], clock)
    when = f"at {span}"
    if len(times) > 1:
        when = f"if every budget from {span} is as likely{' on a log scale' if is_log else ''}"
    names = [escape_text(one.algorithms[0]) for one in choices]
    if first.best >= CLEAR_CHOICE or len(choices) == 1:
        return f"Run {names[0]}: the best choice with {format_share(first.best)} {when}."
    order = sorted(range(len(choices)), key=lambda k: -choices[k].best)
    near = [k for k in order if choices[k].best >= 0.05][:MAX_NAMED]
    odds = ", ".join(f"{names[k]} {format_share(choices[k].best)}" for k in near)
    some = ", ".join(names[k] for k in near[:-1])
    return f"Run {some} or {names[near[-1]]}: it is close {when} ({odds})."


def collect_provenance(
    arguments: argparse.Namespace,
    *,
    posterior: "RatingSource | None" = None,
    runs: "Runs | None" = None,
    model: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the command, versions, sources, instances, runs and model behind an answer.

    Instances and model are those of the posterior or the runs, and else those of the store that
    was read; None if they are unknown. Files are read again for their digest.
    """
    from datetime import UTC, datetime

    from polarbear.inference.versions import software_versions

    sources = [_describe_source(source) for source in list_sources(arguments)]
    stored = sources[-1] if sources else {}
    instances = getattr(posterior, "instances", None) or (runs and len(runs.instances))
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": format_command(arguments),
        "versions": software_versions(),
        "sources": sources,
        "instances": instances or stored.get("instances"),
        "runs": runs and _describe_runs(runs),
        "model": model or _describe_model(posterior) or stored.get("model"),
    }


def _describe_model(posterior: object) -> dict[str, str] | None:
    """Return the prior, evidence and method of a posterior; None if the object is no posterior."""
    names = ("prior", "evidence", "method")
    if not all(hasattr(posterior, name) for name in names):
        return None
    return pick(posterior, *names)


def _describe_runs(runs: "Runs") -> dict[str, Any]:
    """Return the number of runs and their digest."""
    from polarbear.reporting.history import hash_runs

    return {"number": len(runs), "sha256": hash_runs(runs)}


def _describe_source(source: str) -> dict[str, Any]:
    """Return the name and kind of a source, with a digest, or a store's number of events.

    A store only grows, so the number of its events identifies its state.
    """
    import polarbear

    kind = "race" if source.endswith(".toml") else detect_kind(source)
    description = {"name": hide_passwords(source), "kind": kind}
    if kind == "store":
        with polarbear.open_store(source, read_only=True) as store:
            details = {"instances": store.n_instances, "model": store.model.describe()}
            return {**description, "events": store.n_events, **details}
    return {**description, "sha256": _compute_digest(Path(source))}


def _compute_digest(path: Path) -> str:
    """Compute the SHA-256 of a file, or of the names and digests of a folder's visible files."""
    import hashlib

    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    names = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    visible = [name for name in names if not any(part.startswith(".") for part in Path(name).parts)]
    lines = (
        f"{_compute_digest(path / name)}  {name}\n" for name in visible
    )  # as sha256sum writes them
    return hashlib.sha256("".join(lines).encode()).hexdigest()
