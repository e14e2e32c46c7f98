"""Real frameworks on the same thirty candidates: evaluated by a judge, and by themselves.

Writes frameworks_live.md, and a row for each framework to results/live.jsonl.

python studies/judge/live.py --framework shinka   # in an environment with that framework; minutes
python studies/judge/live.py                      # all frameworks that are installed; goes on
python studies/judge/live.py --quick              # Optuna alone, on few candidates
python studies/judge/live.py --table              # the table again from results/
"""

import json
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import Pipe, get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

import numpy as np
from tools.markdown import table
from tools.options import parser
from tools.records import Records

from design_loops import LOOPS, REFERENCE, _send_values
from judging import PROPOSALS, TIMES, make_loop_judge

QUICK_CPU_SECONDS = 40

PACKAGES: dict[str, str] = {"shinka": "shinka-evolve", "blade": "iohblade"}
"""The packages whose name is not that of the framework."""

N_TRUTH = 400
"""Other instances, on which all programs that work are compared in the end."""


def find_folder(folder: Path) -> Path:
    """The folder of the judge, or of the framework's own evaluation, below that of a loop."""
    kept = [*folder.rglob("race.db"), *folder.rglob("own.jsonl")]
    return kept[0].parent


def measure(framework: str) -> dict[str, Any]:
    """A row: costs and choices of a framework with a judge, and with its own evaluation."""
    with tempfile.TemporaryDirectory() as scratch:
        judged = LOOPS[framework](Path(scratch, "judged"))
        judge = make_loop_judge(find_folder(Path(scratch, "judged")))
        spent, judgements = judge.status().spent, judge.judgements()
        own = LOOPS[framework](Path(scratch, "own"), own=True)
        lines = (find_folder(Path(scratch, "own")) / "own.jsonl").read_text().splitlines()
        runs = [json.loads(line)["runs"] for line in lines]
        means = measure_truth()
        return {
            "framework": framework,
            "version": version(PACKAGES.get(framework, framework)),
            "candidates": len(PROPOSALS),
            "judged": len(judgements),
            "copies": sum(judgement.copy_of is not None for judgement in judgements),
            "rejected": sum(not judgement.is_accepted for judgement in judgements),
            "prompts": len(judged.prompts),
            "prompts with a judgement": sum("Fitness: 0." in text for text in judged.prompts),
            "runs": spent.runs,
            "evaluations": spent.time,
            "members": len(judge.members()),
            "places": find_places(judged.best, means),
            "own calls": len(runs),
            "own runs": sum(runs),
            "own evaluations": sum(runs) * TIMES[-1],
            "own places": find_places(own.best, means),
        }


def measure_truth() -> dict[str, np.ndarray]:
    """The mean values of all programs that work, at each time on other instances."""
    means = {}
    for text in [REFERENCE, *PROPOSALS]:
        ours, theirs = Pipe(duplex=False)
        process = get_context("fork").Process(
            target=_send_values, args=(theirs, text, range(N_TRUTH), 1)
        )
        process.start()
        theirs.close()
        try:
            if ours.poll(200):
                means[text.strip()] = np.mean(ours.recv(), axis=0)
        except EOFError:
            pass  # the program failed
        process.kill()
        process.join()
    return means


def find_places(best: str, means: dict[str, np.ndarray]) -> list[int]:
    """The place of a program among all, by its mean value at each time; copies count once."""
    distinct = np.unique(np.array([*means.values()]), axis=0)
    return [1 + int(n) for n in (distinct < means[best.strip()]).sum(axis=0)]


def tabulate(rows: list[dict[str, Any]]) -> str:
    head = ["framework", "judged", "rejected", "copies", "prompts with a judgement", "runs"]
    head += ["evaluations", "set", "place of its best", "own: calls", "runs", "evaluations"]
    head += ["place of its best"]
    lines = [
        [
            f"{row['framework']} {row['version']}",
            row["judged"],
            row["rejected"],
            row["copies"],
            f"{row['prompts with a judgement']} of {row['prompts']}" if row["prompts"] else "",
            row["runs"],
            f"{row['evaluations']:,.0f}",
            row["members"],
            " and ".join(map(str, row["places"])),
            row.get("own calls", "not measured"),
            row.get("own runs", ""),
            f"{row['own evaluations']:,}" if "own evaluations" in row else "",
            " and ".join(map(str, row.get("own places", ()))),
        ]
        for row in rows
    ]
    return (
        f"# Frameworks with a judge, and without\n\n{len(PROPOSALS)} programs that a stub model "
        "proposes: good, bad, broken, hanging, printing and copied ones. *Place of its best*: the "
        f"best program by the framework, among all by the mean value on {N_TRUTH} other instances, "
        f"at {' and at '.join(map(str, TIMES))} evaluations.\n\n" + table(head, lines) + "\n"
    )


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--framework", choices=LOOPS, nargs="*", default=list(LOOPS))
    wanted = asked.parse_args()
    frameworks: list[str] = [] if wanted.table else wanted.framework
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(__file__).parent
        if wanted.quick:
            folder, frameworks = Path(scratch), ["optuna"]
        kept = Records(folder / "results" / "live.jsonl", ("framework",))
        for framework in frameworks:
            if (framework,) in kept:
                continue
            try:
                version(PACKAGES.get(framework, framework))
            except PackageNotFoundError as error:
                print(f"{framework}: not measured here ({error} is not installed)")
                continue
            kept.add(measure(framework))
        text = tabulate(kept.rows)
        (folder / "frameworks_live.md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
