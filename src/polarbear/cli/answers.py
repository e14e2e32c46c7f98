"""How a command answers: text for people, JSON with its provenance for programs."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polarbear.cli.inputs import given_sources, kind_of
from polarbear.cli.output import shown, to_json, typed, without_password

if TYPE_CHECKING:
    from polarbear.data.runs import Runs
    from polarbear.selection.ratings import RatingSource


def say(
    wanted: argparse.Namespace,
    text: object,
    plain: Mapping[str, Any],
    *,
    posterior: "RatingSource | None" = None,
    runs: "Runs | None" = None,
    model: Mapping[str, str] | None = None,
) -> None:
    """Print an answer: the text, or with ``--json`` what it is made from, as one object.

    The object says where the answer comes from, as far as what is passed knows it.
    """
    if wanted.json:
        origin = provenance(wanted, posterior=posterior, runs=runs, model=model)
        print(to_json({**plain, "provenance": origin}))
    else:
        print(shown(text))


def provenance(
    wanted: argparse.Namespace,
    *,
    posterior: "RatingSource | None" = None,
    runs: "Runs | None" = None,
    model: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Where the answer of a command comes from; None where that is not known.

    Instances, model and the digest of the runs are those of what is passed, and else those of the
    store that was read. Files are read again for their digest.
    """
    from datetime import UTC, datetime

    from polarbear.inference.versions import software_versions

    sources = [_origin(source) for source in given_sources(wanted)]
    stored = sources[-1] if sources else {}
    instances = getattr(posterior, "instances", None) or (runs and len(runs.instances))
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": typed(wanted),
        "versions": software_versions(),
        "sources": sources,
        "instances": instances or stored.get("instances"),
        "runs": runs and _runs(runs),
        "model": model or _model(posterior) or stored.get("model"),
    }


def _model(posterior: object) -> dict[str, str] | None:
    """Prior, evidence and method of a posterior; ratings do not know them."""
    names = ("prior", "evidence", "method")
    if not all(hasattr(posterior, name) for name in names):
        return None
    return {name: getattr(posterior, name) for name in names}


def _runs(runs: "Runs") -> dict[str, Any]:
    from polarbear.reporting.history import fingerprint

    return {"number": len(runs), "sha256": fingerprint(runs)}


def _origin(source: str) -> dict[str, Any]:
    """What a path or URL leads to, and what tells its content from any other.

    A store only grows, so the number of its events says which state of it was read. Of a folder the
    digest covers the names and the digests of all files, in order.
    """
    import polarbear

    kind = "race" if source.endswith(".toml") else kind_of(source)
    named = {"name": without_password(source), "kind": kind}
    if kind == "store":
        with polarbear.open_store(source, read_only=True) as store:
            known = {"instances": store.n_instances, "model": store.model.described()}
            return {**named, "events": store.n_events, **known}
    return {**named, "sha256": _digest(Path(source))}


def _digest(path: Path) -> str:
    import hashlib

    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    names = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    shown = [name for name in names if not any(part.startswith(".") for part in Path(name).parts)]
    lines = (f"{_digest(path / name)}  {name}\n" for name in shown)  # as sha256sum writes them
    return hashlib.sha256("".join(lines).encode()).hexdigest()
