"""``write_supplement`` and ``verify_supplement``: a race as one file that others can check.

The file is a zip of plain texts. Its members are in a fixed order with a fixed date, so the same
store gives the same bytes. Nothing in it is executed.
"""

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from polarbear._text import format_count
from polarbear.data.array_files import MALFORMED_FILE_ERRORS
from polarbear.data.unpacking import check_zip
from polarbear.errors import DataError
from polarbear.inference.versions import software_versions
from polarbear.papers.citation import render_bibtex
from polarbear.papers.latex import to_latex
from polarbear.papers.methods_text import describe_methods
from polarbear.racing.codec import to_plain
from polarbear.racing.events import Decided, Event, Hosted, from_json, to_json
from polarbear.racing.race import Race
from polarbear.reporting.content import make_document
from polarbear.reporting.page import MAX_REFITS, render_document
from polarbear.reporting.verifying import verify_decisions

KIND, VERSION = "polarbear supplement", 1

FIXED_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of all members, because the same store must give the same bytes."""

MAX_BYTES = 4 * 2**30
"""The largest size of all members together that is read."""

README = """\
Supplement of a race of optimisation algorithms, made with PolarBear {version}.

Verify it:    pip install 'polarbear-race=={version}'
              polarbear supplement --verify THIS_FILE

events.jsonl    everything that happened, in order, one event on a line: runs, requests, decisions
runs.csv        the runs that count, as a long table
decisions.json  every decision: verdicts, open pairs
race.json       seed, times, question, model, and the status of the race at the end
versions.json   the software that made this file, and the software of the worker processes
methods.txt     the methods paragraph of a paper
table.tex       the table of a paper, for LaTeX with booktabs and siunitx
references.bib  how to cite the method and the software
report.html     the interactive report; open it in a browser
manifest.json   SHA-256 digests of all other files

What is verified: the digests of all files; that the runs in events.jsonl give every recorded
request and decision again; and, byte for byte, that runs.csv, decisions.json and race.json follow
from events.jsonl. methods.txt and table.tex are written again and compared, their numbers up to
rounding. report.html, versions.json and references.bib are compared by their digests alone.

With the same versions on the same kind of processor, decisions are the same in every digit.
Otherwise posterior probabilities may differ by rounding; decisions by e-values do not depend on
them. Names of hosts are left out. Reasons of failures are included as the programs printed them.
"""


@dataclass(frozen=True)
class SupplementCheck:
    """The result of :func:`verify_supplement`: what differs, and what was verified.

    Attributes
    ----------
    n_runs, n_decisions, n_requests
        What was recorded.
    n_identical
        The number of decisions and requests that are the same in every digit.
    difference
        The largest difference of a posterior probability.
    problems
        What is not as it should be, with its place; empty if the supplement is verified.
    notes
        Differences that other versions or processors explain.
    """

    n_runs: int = 0
    n_decisions: int = 0
    n_requests: int = 0
    n_identical: int = 0
    difference: float = 0.0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_verified(self) -> bool:
        """Whether all files of the supplement are unchanged and follow from its runs."""
        return not self.problems

    def __str__(self) -> str:
        if self.problems:
            return "\n".join(["NOT verified:", *(f"  {problem}" for problem in self.problems)])
        made_again = self.n_decisions + self.n_requests
        same = "all the same in every digit"
        if self.n_identical < made_again:
            same = (
                f"{self.n_identical:,} of {made_again:,} the same in every digit, the others up to "
                f"rounding (probabilities differ by {self.difference:.2g} at most)"
            )
        counts = (
            f"{format_count(self.n_decisions, 'decision')} and "
            f"{format_count(self.n_requests, 'request')}"
        )
        return "\n".join(
            [
                "verified",
                "  files      digests are right; runs, decisions and race are the same bytes",
                f"  decisions  {counts} made again from {format_count(self.n_runs, 'run')}: {same}",
                *(f"  note       {note}" for note in self.notes),
            ]
        )


def write_supplement(events: Iterable[Event], path: str | PathLike[str]) -> Path:
    """Write the supplement of a race, given its events, and return the path.

    >>> import numpy as np, polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> path = write_supplement(pb.replay(runs).events, "supplement.zip")
    >>> print(verify_supplement(path))
    verified
      files      digests are right; runs, decisions and race are the same bytes
      decisions  ... made again from ... runs: all the same in every digit
    >>> path.unlink()
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}; create it first")
    kept = [_without_host(event) for event in events]
    race = Race.from_events(kept)
    page = make_document(race, refits=MAX_REFITS) | {"made": ""}  # the date would change the bytes
    members = {
        "README.txt": README.format(version=software_versions()["polarbear-race"]),
        "events.jsonl": "".join(f"{to_json(event)}\n" for event in kept),
        **_derive_files(race),
        **_write_texts(race),
        "versions.json": _format(
            {"software": software_versions(), "workers": _collect_workers(kept)}
        ),
        "references.bib": render_bibtex() + "\n",
        "report.html": render_document(page),
    }
    write_members(path, members)
    return path


def write_members(path: Path, members: Mapping[str, str]) -> None:
    """Write texts and their manifest to a zip file, whose bytes depend on the texts alone."""
    content = {name: text.encode() for name, text in members.items()}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(content.items())}
    manifest = {"kind": KIND, "version": VERSION, "sha256": digests}
    content["manifest.json"] = _format(manifest).encode()
    partial = path.with_name(path.name + ".partial")
    with zipfile.ZipFile(partial, "w") as file:
        for name, data in content.items():
            member = zipfile.ZipInfo(name, FIXED_DATE)
            member.create_system, member.external_attr = 3, 0o644 << 16  # the same on any system
            file.writestr(member, data, zipfile.ZIP_DEFLATED, 9)
    partial.replace(path)


def read_members(path: str | PathLike[str]) -> dict[str, bytes]:
    """Return the content of each file in a supplement; raise an error if it is no supplement."""
    try:
        with zipfile.ZipFile(path) as file:
            check_zip(file, MAX_BYTES)
            members = {name: file.read(name) for name in file.namelist()}
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except MALFORMED_FILE_ERRORS as error:
        raise DataError(
            f"{path} is damaged, or not a zip file ({error}): name another file"
        ) from None
    if "manifest.json" not in members:
        raise DataError(
            f"{path} is no supplement of PolarBear, as it has no manifest.json: name another"
        )
    return members


def verify_supplement(path: str | PathLike[str]) -> SupplementCheck:
    """Make everything in a supplement again from its runs, and compare.

    :func:`write_supplement` has an example.
    """
    members = read_members(path)
    problems = _check_digests(members)
    if problems:
        return SupplementCheck(problems=tuple(problems))
    try:
        events = _read_events(members["events.jsonl"])
        race = Race.from_events(events)
    except DataError as error:
        return SupplementCheck(problems=(f"events.jsonl: {error}",))
    problems = [
        problem
        for name, text in _derive_files(race).items()
        for problem in _compare_bytes(name, members.get(name, b""), text.encode())
    ]
    compared = list(verify_decisions(events))
    problems += [f"events.jsonl: {one}" for one in compared if not one.is_same]
    notes = []
    for name, text in _write_texts(race).items():
        notes += _compare_text(name, members.get(name, b"").decode(errors="replace"), text)
    same_version = _get_version(members) == software_versions()["polarbear-race"]
    if same_version:
        problems += [note for note in notes if "words" in note]
    function = "" if race.state.setup.model is None else race.state.setup.model.function
    if function:
        notes.append(
            f"the race used fit={function}, which a file cannot hold: polarbear.fit is used here"
        )
    return SupplementCheck(
        n_runs=race.n_runs,
        n_decisions=sum(isinstance(one.recorded, Decided) for one in compared),
        n_requests=sum(not isinstance(one.recorded, Decided) for one in compared),
        n_identical=sum(one.is_identical for one in compared),
        difference=max((one.difference for one in compared), default=0.0),
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _check_digests(members: Mapping[str, bytes]) -> list[str]:
    """Return the files whose digests differ from those in the manifest, as messages."""
    try:
        manifest = json.loads(members["manifest.json"])
        kind, version, digests = manifest["kind"], manifest["version"], dict(manifest["sha256"])
    except (ValueError, KeyError, TypeError):
        return ["manifest.json: damaged"]
    if kind != KIND or not isinstance(version, int) or version > VERSION:
        return [
            f"manifest.json: expected {KIND!r} up to version {VERSION}, got {kind!r} {version!r}"
        ]
    problems = [f"{name}: missing" for name in sorted({*digests, *REQUIRED} - {*members})]
    for name in sorted({*members} - {"manifest.json"}):
        if name not in digests:
            problems.append(f"{name}: not in manifest.json")
        elif hashlib.sha256(members[name]).hexdigest() != digests[name]:
            problems.append(f"{name}: changed, its SHA-256 digest is not that of manifest.json")
    return problems


REQUIRED = ("events.jsonl", "runs.csv", "decisions.json", "race.json", "methods.txt", "table.tex")


def _read_events(data: bytes) -> list[Event]:
    """Parse lines as events of a race; raise an error that names the first line that is not one."""
    events: list[Event] = []
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        try:
            event = from_json(line)
        except DataError as error:
            raise DataError(f"line {number:,}: {error}") from None
        events.append(event)
    return events


def _derive_files(race: Race) -> dict[str, str]:
    """Return the files that follow from the events exactly, without rounding on this machine."""
    runs = io.StringIO()
    race.runs.to_csv(runs)
    state = race.state
    definition = {
        "seed": state.setup.seed,
        "direction": state.setup.direction,
        "clock": state.setup.clock,
        "times": state.setup.times,
        "question": to_plain(state.setup.question),
        "budget": to_plain(state.setup.budget),
        "model": to_plain(state.setup.model),
        "status": race.status.to_dict(),
    }
    decisions = [_describe_decision(event) for event in race.events if isinstance(event, Decided)]
    return {
        "runs.csv": runs.getvalue(),
        "decisions.json": _format({"decisions": decisions}),
        "race.json": _format(definition),
    }


def _describe_decision(event: Decided) -> dict[str, Any]:
    """Return a decision as names and numbers, without the plan that follows from it."""
    decision = event.decision
    return {
        "round": event.round + 1,
        "open_pairs": [[one.first, one.second] for one in decision.open],
        "verdicts": [one._asdict() for one in decision.verdicts],
        "chosen": decision.chosen,
        "problems": decision.problems,
    }


def _write_texts(race: Race) -> dict[str, str]:
    """Return the methods paragraph and tables for a paper, with numbers from a posterior."""
    return {"methods.txt": describe_methods(race) + "\n", "table.tex": to_latex(race)}


def _without_host(event: Event) -> Event:
    """Return an event without the name of the host, which concerns no reader."""
    if not isinstance(event, Hosted):
        return event
    return replace(event, details={k: v for k, v in event.details.items() if k != "host"})


def _collect_workers(events: Sequence[Event]) -> list[Mapping[str, str]]:
    """Return the details of each worker process."""
    return [event.details for event in events if isinstance(event, Hosted) and event.details]


def _get_version(members: Mapping[str, bytes]) -> str | None:
    """Return the version of PolarBear that wrote a supplement."""
    try:
        return json.loads(members["versions.json"])["software"]["polarbear-race"]
    except (ValueError, KeyError, TypeError):
        return None


def _compare_bytes(name: str, recorded: bytes, derived: bytes) -> list[str]:
    """Return the first line in which a file differs from the file derived from the events."""
    if recorded == derived:
        return []
    pairs = zip([*recorded.split(b"\n"), b""], [*derived.split(b"\n"), b""], strict=False)
    number, (was, expected) = next(
        ((k, pair) for k, pair in enumerate(pairs, 1) if pair[0] != pair[1]), (0, (b"", b""))
    )
    was, expected = (line.decode(errors="replace")[:120] for line in (was, expected))
    return [f"{name}: line {number:,} is {was!r}, but events.jsonl gives {expected!r}"]


def _compare_text(name: str, recorded: str, written: str) -> list[str]:
    """Return how a stored text differs from the text that this machine writes."""
    if recorded == written:
        return []
    if _NUMBER.sub("#", recorded) == _NUMBER.sub("#", written):
        return [f"{name}: numbers differ in their last digits, or versions do"]
    return [f"{name}: its words are not those that follow from the race"]


_NUMBER = re.compile(r"[<>] 0\.\d+|\d[\d.,]*(?:\(\d+\))?")


def _format(plain: Mapping[str, Any]) -> str:
    return json.dumps(plain, indent=1, ensure_ascii=False, default=list) + "\n"
