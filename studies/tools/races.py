"""What a race of a study has found, as small files."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import polarbear as pb
from polarbear.calibration.population import to_dense_positions
from polarbear.coordinator.run_race import SolverRace
from polarbear.data.names import natural_sort_key
from polarbear.data.run import FAILED
from polarbear.racing.codec import to_plain
from polarbear.racing.events import Asked, Decided, Event, Started
from polarbear.racing.jobs import Job
from polarbear.racing.questions.stored import question_to_plain
from tools import story


def keep(found: SolverRace, folder: Path, **facts: Any) -> dict[str, Any]:
    """Close a race, and write what is small of it: race.json, positions.npz and story.npz.

    Gives back what is in the first.
    """
    events, runs, posterior = found.events, found.runs, found.posterior
    started, rounds = events[0], course(events)
    assert isinstance(started, Started)
    facts |= {
        "algorithms": list(runs.algorithms),
        "pareto": list(found.pareto),
        "ended": found.ended,
        "question": question_to_plain(found.question),
        "budget": to_plain(found.budget),
        "times": list(started.times),
        "spent": found.spent.time,
        "runs": found.spent.runs,
        "instances": len(runs.instances),
        "failed": sum(run.status in FAILED for run in runs),
        "rounds": rounds,
        "reached": reached(runs, started.times),
        "verdict": "" if posterior is None else str(posterior.verdict(found.question.certainty)),
        "chosen": {} if posterior is None else _chosen(posterior),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "race.json").write_text(json.dumps(facts, indent=1) + "\n")
    rankings = pb.rank(runs, started.times)
    np.savez_compressed(
        folder / "positions.npz",
        position=to_dense_positions(rankings).astype(np.int8),
        algorithms=np.array(rankings.algorithms),
        times=rankings.times,
    )
    story.save(story.tell(found.in_memory(), rounds), folder / story.FILE)
    found.close()
    return facts


def _chosen(posterior: pb.Posterior) -> dict[str, list[str]]:
    """Whom to run if any time is as likely to be the last, or any order of magnitude."""
    asked = {scale: pb.preferences.between(scale=scale) for scale in ("linear", "log")}
    return {scale: list(pb.select(posterior, one).algorithms) for scale, one in asked.items()}


def load(folder: Path) -> dict[str, Any] | None:
    """What :func:`keep` has written in race.json, if anything."""
    path = folder / "race.json"
    return json.loads(path.read_text()) if path.exists() else None


def load_all(results: Path) -> dict[str, dict[str, Any]]:
    """The races of a study, by the names of their folders."""
    names = sorted((path.name for path in results.glob("*")), key=natural_sort_key)
    return {name: facts for name in names if (facts := load(results / name))}


def course(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Round by round: instances and runs so far, who was eliminated by whom, who races."""
    asked: list[tuple[int, Job]] = []
    racing: set[str] = set()
    rounds = []
    for event in events:
        if isinstance(event, Asked):
            asked += [(event.round, job) for job in event.jobs]
            racing |= {job.algorithm for job in event.jobs}
        if isinstance(event, Decided):
            racing -= {out.algorithm for out in event.decision.eliminated}
            seen = [job for number, job in asked if number <= event.round]
            unsettled = {name for pair in event.decision.open for name in pair[:2]}
            rounds.append(
                {
                    "round": len(rounds) + 1,
                    "instances": len({job.instance for job in seen}),
                    "runs": len(seen),
                    "eliminated": [
                        [out.algorithm, out.rival, out.probability]
                        for out in event.decision.eliminated
                    ],
                    "settled": sorted(racing - unsettled),
                    "open": len(event.decision.open),
                }
            )
    return rounds


def reached(runs: pb.Runs, times: Sequence[float]) -> dict[str, list[int]]:
    """On how many instances each algorithm was run at least until each time."""
    found = {name: [0] * len(times) for name in runs.algorithms}
    until = Counter((run.algorithm, run.until) for run in runs)
    for (name, last), number in until.items():
        for k, time in enumerate(times):
            found[name][k] += number if last >= time else 0
    return found
