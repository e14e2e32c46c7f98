"""How often is a judge wrong, and what does it cost? 500 candidates with known effects.

Writes errors.md, and a row for each rule to results/errors.jsonl.

python studies/judge/errors.py                     # all rules that are installed; goes on
python studies/judge/errors.py --rules shinka      # in an environment with that framework
python studies/judge/errors.py --quick             # 20 candidates: does it run at all?
python studies/judge/errors.py --table             # the table again from results/
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from judge.frameworks import RULES, NotInstalledError
from judge.in_process import InProcess
from tools.options import parser
from tools.records import Records

import polarbear as pb
from polarbear.inference.e_values import Shares
from polarbear.inference.replacing import Duels, DuelTally, PairEvidence, weigh
from polarbear.racing.jobs import derive_seed
from polarbear.racing.questions.replacements import Shown

QUICK_CPU_SECONDS = 9

CERTAINTY = 0.95

MAX_RUNS = 100
"""The limit of runs of a candidate, for the judge and for early stopping."""

CLEAR = 0.2
"""Effects of at least this size, in standard deviations, are counted as errors if missed."""


class Answer(NamedTuple):
    """What a rule says of a candidate: rejected, rated below the incumbent, and its runs."""

    rejected: bool
    below: bool
    runs: int


def score(effect: float, difficulty: float, rng: np.random.Generator) -> float:
    """A score with standard deviation 1 over instances and runs, half of it of the instance.

    The difference of two candidates on an instance has standard deviation 1, too.
    """
    return float(np.sqrt(0.5) * (difficulty + rng.normal()) + effect)


def make_solver(candidate):
    def solve(job):
        rng = np.random.default_rng([job.seed, candidate["id"]])
        yield 1, score(candidate["effect"], job.instance, rng)

    return solve


def make_instance(rng):
    return rng.normal()


def make_judge(folder: str | Path, question: pb.Question | None) -> pb.design.Judge:
    return pb.design.Judge(
        folder,
        make_solver,
        make_instance,
        [1],
        reference={"id": 0, "effect": 0.0},
        direction="maximize",
        clock="evaluations",
        budget=pb.Budget(runs=MAX_RUNS, failures=3),
        question=question,
        executor=InProcess(),
    )


def answer(judgement: pb.design.Judgement) -> Answer:
    return Answer(not judgement.is_accepted, judgement.fitness < 0.5, judgement.cost.runs)


def judge_by_rule(effects: np.ndarray) -> tuple[list[Answer], int]:
    """Every candidate in a race of its own against the incumbent, by the e-values of the package.

    The scores are those that the judge would see, and so are the rounds of eight instances. The
    fitness is the smoothed win rate, which orders two algorithms at one time as the judge does.
    """
    answers, n_runs = [], 0
    for k, effect in enumerate(effects.tolist(), 1):
        wins = n = 0
        while True:
            for _ in range(min(8, MAX_RUNS - n)):
                n += 1
                ours, theirs = (draw_score(e, i, n) for e, i in ((effect, k), (0.0, 0)))
                wins += ours > theirs
            kind = decide(wins, n)
            if kind != "undecided" or n >= MAX_RUNS:
                break
        answers.append(Answer(kind == "dominated", 2 * wins < n, n))
        n_runs += 2 * n
    return answers, n_runs


def draw_score(effect: float, candidate: int, instance: int) -> float:
    """The score of a candidate on an instance of the judge's race."""
    rng = np.random.default_rng(derive_seed(0, ["instance", str(instance)]))
    seed = derive_seed(0, ["candidate", str(instance)])
    return score(effect, make_instance(rng), np.random.default_rng([seed, candidate]))


def decide(wins: int, n: int) -> str:
    """The verdict about a candidate after this number of wins against the incumbent."""
    place = np.tile([1, 0], (1, n, 1))
    place[0, :wins] = [0, 1]
    once, first, second = [slice(0, 1)], np.array([0]), np.array([1])
    duels = Duels.of(first, second, place, once, np.ones(n))
    evidence = PairEvidence.empty(1, (2, 2))
    weigh(evidence, ((first, second), (second, first)), DuelTally.of(duels, once), 0.1)
    shown = Shown.of((evidence,), find_thresholds(), CERTAINTY, Shares(), None)
    if shown.replaces[0, 1, 0]:
        return "dominated"
    return "member" if shown.settled[0, 1] else "undecided"


@cache
def find_thresholds() -> np.ndarray:
    """The thresholds of e-values between a candidate that joined and the incumbent (2, 2)."""
    race = pb.Race(["incumbent"], [1], direction="maximize")
    race.add("candidate")
    return race.state.members.entries.log_thresholds(["candidate", "incumbent"], CERTAINTY)


def judge_alone(effects: np.ndarray) -> tuple[list[Answer], int]:
    """The same by the judge itself."""
    answers, n_runs = [], 0
    for k, effect in enumerate(effects.tolist(), 1):
        with tempfile.TemporaryDirectory() as folder:
            judge = make_judge(folder, None)
            answers.append(answer(judge({"id": k, "effect": effect})))
            n_runs += judge.status().n_runs
    return answers, n_runs


def judge_in_one_race(
    effects: np.ndarray, evaluators: int, question: pb.Question | None
) -> tuple[list[Answer], int]:
    """All candidates in one race, from this number of evaluators."""
    candidates = [{"id": k, "effect": e} for k, e in enumerate(effects.tolist(), 1)]
    with tempfile.TemporaryDirectory() as folder:
        judge = make_judge(folder, question)
        with ThreadPoolExecutor(evaluators) as pool:
            answers = list(pool.map(lambda one: answer(judge(one)), candidates))
        return answers, judge.status().n_runs


AGAINST_REFERENCE = pb.NoWorse("reference", certainty=CERTAINTY)

JUDGES: dict[str, Callable[[np.ndarray], tuple[list[Answer], int]]] = {
    "judge, a race each": judge_by_rule,
    "pb.Judge, a race each": judge_alone,
    "pb.Judge, against the reference": lambda e: judge_in_one_race(e, 1, AGAINST_REFERENCE),
    "pb.Judge, against the reference, 4 evaluators": lambda e: judge_in_one_race(
        e, 4, AGAINST_REFERENCE
    ),
}
"""The first one takes seconds, so it has all candidates; the others have as many as asked for."""

PAIRS = (
    ("judge, a race each", "pb.Judge, a race each"),
    ("pb.Judge, against the reference", "pb.Judge, against the reference, 4 evaluators"),
)
"""Judges that should decide the same."""


def use_rule(name: str, effects: np.ndarray) -> tuple[list[Answer], int]:
    """A rule of a framework, which sees scores one by one."""
    rule = RULES[name]()
    answers, n_runs = [], rule.incumbent_runs
    for k, effect in enumerate(effects.tolist(), 1):
        seen = 0

        def draw(effect: float = effect, k: int = k) -> Iterator[tuple[float, float]]:
            """Scores of the incumbent and of the candidate on the next instance."""
            nonlocal seen
            while True:
                rng = np.random.default_rng([k, seen, 7])
                difficulty, ours = rng.normal(), np.random.default_rng([k, seen])
                incumbent = score(0.0, difficulty, np.random.default_rng([0, rng.integers(2**31)]))
                seen += 1
                yield incumbent, score(effect, difficulty, ours)

        rejected = rule.rejects(draw())
        answers.append(Answer(rejected, rejected, seen))
        n_runs += seen * (1 + rule.runs_incumbent)
    return answers, n_runs


def measure(name: str, effects: np.ndarray) -> dict[str, Any]:
    """A row of the results."""
    start = time.process_time()
    answers, n_runs = JUDGES[name](effects) if name in JUDGES else use_rule(name, effects)
    rejected, below = (np.array([each[k] for each in answers]) for k in (0, 1))
    better, worse = effects >= CLEAR, effects <= -CLEAR
    return {
        "rule": name,
        "n": len(effects),
        "better rejected": float(rejected[better].mean()),
        "better below": float(below[better].mean()),
        "worse accepted": float((~rejected)[worse].mean()),
        "worse above": float((~below)[worse].mean()),
        "runs": n_runs,
        "seconds": round(time.process_time() - start, 1),
        "rejected": "".join(map(str, rejected.astype(int).tolist())),
    }


def tabulate(rows: list[dict[str, Any]]) -> str:
    head = (
        "| rule | candidates | better, rejected | better, rated below | worse, not rejected "
        "| worse, rated above | runs for each, incumbent included |"
    )
    lines = [head, "|---|---|---|---|---|---|---|"]
    for row in rows:
        shares = [row[k] for k in ("better rejected", "better below", "worse accepted")]
        shares.append(row["worse above"])
        text = " | ".join(f"{share:.1%}".replace("%", " %") for share in shares)
        lines.append(f"| {row['rule']} | {row['n']} | {text} | {row['runs'] / row['n']:.1f} |")
    known = {row["rule"]: row["rejected"] for row in rows}
    for first, second in PAIRS:
        if {first, second} <= known.keys():
            pairs = list(zip(known[first], known[second], strict=False))
            n_same = sum(a == b for a, b in pairs)
            lines += ["", f"{first} and {second}: {n_same} of {len(pairs)} decisions are the same."]
    n = max(row["n"] for row in rows)
    said = (
        f"{n} candidates with effects from -0.5 to 0.5 standard deviations. Better and worse: by "
        f"at least {CLEAR} standard deviations. Certainty 0.95, at most {MAX_RUNS} runs each."
    )
    return "\n".join([said, "", *lines]) + "\n"


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--rules", nargs="*", default=[*JUDGES, *RULES])
    asked.add_argument("--judged", type=int, default=500, help="candidates for pb.Judge itself")
    wanted = asked.parse_args()
    n = 16 if wanted.quick else 500
    effects = np.random.default_rng(1).permutation(np.linspace(-0.5, 0.5, n))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else Path(__file__).parent
        kept = Records(folder / "results" / "errors.jsonl", ("rule",))
        for name in wanted.rules if not wanted.table else ():
            if (name,) in kept:
                continue
            try:
                few = name.startswith("pb.Judge")
                kept.add(measure(name, effects[: wanted.judged] if few else effects))
                print(name, flush=True)
            except NotInstalledError as missing:
                print(f"{name}: {missing}", flush=True)
        text = tabulate(kept.rows)
        (folder / "errors.md").write_text(f"# Errors and cost on known truth\n\n{text}")
        print(text)


if __name__ == "__main__":
    main()
