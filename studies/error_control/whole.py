"""Part (e): whole races by ``pb.Race`` with the real fit, and what their forecasts are worth.

Five algorithms at ten times, three of them members. *plain*: truths from the prior of the paper's
examples, and luck that lasts for half the range of times. *clones*: four algorithms of such a truth
and a copy of one of the members, and luck that never changes. Each truth is raced twice: with
e-values, and by the paper's method, with a posterior at each look. The second says how hard the
truths are. Rows *per_look* are of an earlier rule: the posterior decided, and all else was as with
e-values.
"""

from itertools import product
from typing import Any

import numpy as np
from error_control.decisions import Floats
from racing.course import Method, course, drive, grid
from tools.records import Records, seeded

import polarbear as pb
from polarbear.racing.events import Asked, Decided
from polarbear.racing.race import Race
from polarbear.simulation import PAPER_PRIOR, draw_truth, find_members

RACES, INSTANCES, TIMES, ALGORITHMS, MEMBERS = 60, 4096, 10, 5, 3
PERSISTENCE = {"plain": 0.5, "clones": np.inf}
CERTAINTY = 0.95
QUESTIONS = {
    "per_member": pb.ParetoSet(certainty=CERTAINTY),
    "paper": pb.PaperParetoSet(certainty=CERTAINTY),
}


def truth_of(setting: str, rng: np.random.Generator) -> Floats:
    """Draw utilities until three of the algorithms are members."""
    copied = setting == "clones"
    while True:
        truth, _ = draw_truth(PAPER_PRIOR, grid(TIMES), ALGORITHMS - copied, rng)
        if copied:
            best = int(np.flatnonzero(find_members(truth))[0])
            truth = np.concatenate([truth, truth[:, [best]]], axis=1)
        if find_members(truth).sum() == MEMBERS:
            return truth


def margins(truth: Floats) -> list[float]:
    """Return by how much each dominated algorithm is behind where it is closest to its dominator.

    The margin is how much more often than half the dominator wins there. The largest over
    dominators counts: who is behind by more than epsilon everywhere can be eliminated soon.
    """
    win = 1 / (1 + np.exp(truth[:, None, :] - truth[:, :, None]))  # row beats column
    closest = (win.min(axis=0) - 0.5).max(axis=0)
    return [round(float(margin), 3) for margin in closest[~find_members(truth)]]


def forecasts(race: Race) -> list[list[float]]:
    """Return 10, 50 and 90 % forecast and the actual rest, in instances, for each decision."""
    used: set[str] = set()
    told = []
    for event in race.events:
        if isinstance(event, Asked):
            used.update(job.instance for job in event.jobs)
        elif isinstance(event, Decided) and event.decision.open and event.decision.forecast:
            told.append((len(used), event.decision.forecast.instances))
    return [[*forecast, len(used) - at] for at, forecast in told]


def measure(records: Records, races: int = RACES, instances: int = INSTANCES) -> None:
    """Race each setting with each question, and keep what came of it."""
    for number in range(races):
        for setting, error_control in product(PERSISTENCE, QUESTIONS):
            if (setting, error_control, CERTAINTY, number) not in records:
                rng = seeded("whole", setting, number)
                on = course(truth_of(setting, rng), instances, rng, PERSISTENCE[setting])
                race, *_ = drive(on, Method(QUESTIONS[error_control]), number)
                key = {"setting": setting, "error_control": error_control}
                key |= {"certainty": CERTAINTY, "race": number}
                records.add(key | judge(race, on.truth))


def judge(race: Race, truth: Floats) -> dict[str, Any]:
    """Return what a race spent, whom it lost and kept, and its forecasts."""
    belongs = dict(
        zip(sorted(race.state.members.entries.numbers), find_members(truth).tolist(), strict=True)
    )
    called = [
        [one.kind, belongs[one.algorithm], None if p is None else round(p, 4)]
        for one in race.verdicts()
        for p in [one.probability if one.is_candidate else None]
    ]
    return {
        "ended": race.ended,
        "runs": race.spent.runs,
        "time": round(race.spent.time, 1),
        "instances": len(race.runs.instances),
        "rounds": race.rounds,
        "lost": sum(belongs[name] for name in race.eliminated),
        "dominated_kept": sum(not belongs[name] for name in race.pareto),
        "margins": margins(truth),
        "statuses": called,
        "forecasts": [[round(float(v), 1) for v in each] for each in forecasts(race)],
    }
