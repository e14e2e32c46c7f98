"""The candidates of the design loop once more, through ``pb.Judge`` with a limit for each.

Writes judged.md, and a row for each candidate to results/judged/.

python studies/design/judged.py                      # 200 candidates: hours; goes on
python studies/design/judged.py --max-time 1000000   # another limit of evaluations of a candidate
python studies/design/judged.py --control paper      # the posterior decides after each round
python studies/design/judged.py --quick              # some seconds: does it run at all?
python studies/design/judged.py --table              # the table again from results/
"""

import os
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from design.run import OPTIONS, build
from design.size import QUICK, Size
from design.space import by_chance
from tools.markdown import table
from tools.modular import cma_es
from tools.options import parser
from tools.records import Records, seeded

import polarbear as pb

QUICK_CPU_SECONDS = 4

MAX_TIME = 400_000
"""The default limit of a candidate: 40 runs in full length, of the 216 of the fixed evaluator."""

CONTROLS: dict[str, pb.Question] = {
    "per_member": pb.ParetoSet(fit={"draws": 500}),
    "paper": pb.PaperParetoSet(certainty=0.95, fit={"draws": 1000}),
}
"""Questions, with the draws of a posterior. With ``per_member`` e-values decide, draws only plan.

The results ``per_look`` are of an earlier rule: the posterior decided, all else as ``per_member``.
"""


def make_solver(options: dict[str, Any]) -> Any:
    return cma_es(**options)


def make_judge(
    folder: Path, size: Size, max_time: float, control: str, slots: int
) -> pb.design.Judge:
    names = tuple(str(k) for k in range(1, size.instances + 1))
    return pb.design.Judge(
        folder,
        make_solver,
        pb.Instances(names, partial(build, dimension=size.dimension)),
        pb.grid.log(100, size.evaluations, size.times),
        reference=OPTIONS,
        direction="minimize",
        clock="evaluations",
        question=CONTROLS[control],
        budget=pb.Budget(time=max_time, failures=3),
        executor=slots,
    )


def judge_all(
    folder: Path, size: Size, max_time: int, control: str, slots: int, hours: float | None
) -> None:
    """Judge the proposals one after the other, and write a row after each."""
    end = inf if hours is None else time.monotonic() + 3600 * hours
    kept = Records(folder / "results" / "judged" / f"{control}-{max_time}.jsonl", ("name",))
    judge = make_judge(folder / f"judge-{control}-{max_time}.db", size, max_time, control, slots)
    for number in range(1, size.candidates + 1):
        name = f"c{number}"
        if (name,) in kept or time.monotonic() > end:
            continue
        judgement = judge(by_chance(number, []), label=name)
        status = judge.status()
        labels = {each.name: each.label for each in judge.judgements()}
        members = [labels.get(member, "baseline") for member in status.pareto]
        kept.add(
            {
                "name": name,
                "status": judgement.verdict.kind,
                "fitness": round(judgement.fitness, 4),
                "copy": judgement.copy_of is not None,
                "runs": judgement.cost.runs,
                "time": judgement.cost.time,
                "spent": status.spent.time,
                "members": members,
            }
        )
        print(name, judgement, f"{status.spent.time:,.0f} evaluations in all", flush=True)


def read_fixed(folder: Path) -> tuple[set[str], set[str]]:
    """The set of the fixed evaluator, and the others that it ran (as ``fixed.py`` drew them)."""
    place = folder / "results" / "chance"
    fixed = Records(place / "fixed.jsonl", ("candidates", "out")).rows
    if not fixed:
        return set(), set()
    raced = Records(place / "ended.jsonl", ("candidates",)).rows[-1]["pareto"]
    proposed = [row["name"] for row in Records(place / "proposals.jsonl", ("name",)).rows]
    rest = [name for name in proposed if name not in raced]
    drawn = seeded("fixed").permutation(rest)[: fixed[-1]["out"]].tolist()
    members = {*fixed[-1]["pareto"]}
    return members, {*raced, *drawn} - members


def tabulate(folder: Path, size: Size) -> str:
    """A row for each limit: cost against the fixed evaluator, and the members that were lost."""
    members, others = read_fixed(folder)
    rows = []
    for path in sorted((folder / "results" / "judged").glob("*.jsonl")):
        control, limit = path.stem.split("-")
        kept = Records(path, ("name",)).rows
        names = {"baseline", *(row["name"] for row in kept)}
        full = len(names) * size.instances * size.evaluations
        said = Counter(row["status"] for row in kept)
        ours, spent = {*kept[-1]["members"]}, kept[-1]["spent"]
        rows.append(
            [
                control,
                f"{int(limit):,}",
                len(kept),
                said["dominated"] + said["removed"],
                sum(row["copy"] for row in kept),
                len(ours),
                f"{spent:,.0f}",
                f"{100 * spent / full:.1f} %",
                *(f"{len(some & ours)} of {len(some & names)}" for some in (members, others)),
            ]
        )
    head = [
        "error control",
        "limit of evaluations",
        "candidates",
        "rejected at once",
        "copies",
        "set at the end",
    ]
    head += ["evaluations", "of the fixed evaluator", "of its set, kept", "of others it ran, kept"]
    text = (
        "# The design loop through pb.Judge\n\nMade by `python studies/design/judged.py`. The "
        f"fixed evaluator makes {size.instances} runs of {size.evaluations:,} evaluations for each "
        f"candidate. It was run on {len(members | others)} of them, and {len(members)} are in its "
        "set. A row compares those that the judge has seen.\n\n" + table(head, rows) + "\n"
    )
    (folder / "judged.md").write_text(text)
    return text


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--max-time", type=int, default=MAX_TIME)
    asked.add_argument("--control", choices=CONTROLS, default="per_member")
    wanted = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else Path(__file__).parent
        size = QUICK if wanted.quick else Size()
        limit = 2_000 if wanted.quick else wanted.max_time
        if not wanted.table:
            judge_all(folder, size, limit, wanted.control, wanted.slots, wanted.hours)
        print(tabulate(folder, size))


if __name__ == "__main__":
    main()
