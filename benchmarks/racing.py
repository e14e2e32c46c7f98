"""What a round of a race costs the race itself, without inference, as its history grows.

    python benchmarks/racing.py            # writes benchmarks/results/racing.md
    python benchmarks/racing.py --quick    # few rounds

Ten algorithms at twenty times, eight instances a round: 80 new runs each. The fit takes no time and
knows nothing, so nobody is eliminated, no pair is settled and every round is like the one before.
What is left is what a race does with its runs: to take them, to keep them, to rank them and to plan
the next round. It should depend on how many are new and not on how many there are.
"""

import time
from collections.abc import Iterator

import numpy as np
from measuring import RESULTS, Row, machine, make_parser

import polarbear as pb

QUICK_CPU_SECONDS = 2

ALGORITHMS, TIMES, BATCH = 10, 20, 8


class Clueless:
    """The same posterior whatever the data are: everybody is as likely to be ahead."""

    def __init__(self, times: np.ndarray) -> None:
        draws = np.random.default_rng(0).standard_normal((200, len(times), ALGORITHMS))
        names = tuple(f"a{k}" for k in range(ALGORITHMS))
        weight = np.full((200, 1), 1 / 200, dtype=np.float32)
        self.posterior = pb.Posterior(names, times, draws.astype(np.float32), weight)

    def __call__(self, _: pb.Rankings, /, *, seed: int) -> pb.Posterior:  # noqa: ARG002
        return self.posterior


class ToTheEnd(pb.ParetoSet):
    """The Pareto set, without a plan: all run to the end."""

    focuses = False


def measure(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each round: runs before it, and milliseconds of CPU to take its runs and to ask again."""
    times = np.linspace(0.02, 1.0, TIMES)
    race = pb.Race(
        [f"a{k}" for k in range(ALGORITHMS)],
        times,
        direction="maximize",
        question=ToTheEnd(fit=Clueless(times)),
        budget=pb.Budget(batch=(BATCH, BATCH)),
    )
    rng = np.random.default_rng(1)
    rise = 100 * np.arange(TIMES)  # every time is an improvement
    jobs = race.ask()
    before, spent = [], []
    for _ in range(rounds):
        runs = [job.run(times, rise + rng.gumbel(size=TIMES)) for job in jobs]
        before.append(race.n_runs)
        begin = time.process_time()
        for run in runs:
            race.tell(run)
        told = time.process_time()
        jobs = race.ask()
        spent.append([told - begin, time.process_time() - told])
    return np.array(before), 1000 * np.array(spent)


def table(before: np.ndarray, spent: np.ndarray) -> str:
    lines = ["| runs before the round | ms of CPU: tell all 80 | ask |", "|---|---|---|"]
    for rows in np.array_split(np.arange(1, len(before)), min(10, len(before) - 1)):
        tell, ask = np.median(spent[rows], axis=0)
        lines.append(f"| {before[rows[0]]:,} to {before[rows[-1]]:,} | {tell:.1f} | {ask:.1f} |")
    total = spent[1:].sum(axis=1)
    tenth = max(1, len(total) // 10)
    grown = np.median(total[-tenth:]) / np.median(total[:tenth])
    lines += ["", f"The last tenth of the rounds takes {grown:.1f} times as long as the first."]
    return "\n".join(lines) + "\n"


def rows(quick: bool) -> Iterator[Row]:
    """The last fifth of many rounds against the first: history should cost nothing."""
    rounds = 20 if quick else 100
    _, spent = measure(rounds)
    total, fifth = spent[1:].sum(axis=1) / 1000, rounds // 5
    yield Row(
        "race",
        f"a round of {ALGORITHMS * BATCH} runs without its fit, after {rounds} rounds",
        "the same at the beginning",
        float(np.median(total[-fifth:])),
        float(np.median(total[:fifth])),
        goal=1.5,
        limit=3.0,
        remark=f"{1e3 * np.median(total[-fifth:]) / ALGORITHMS / BATCH:.2f} ms a run",
    )


def main() -> None:
    wanted = make_parser(__doc__).parse_args()
    text = table(*measure(20 if wanted.quick else 250))
    print(text)
    if not wanted.quick:
        said = f"Made by `python benchmarks/racing.py` on {machine('numpy')}."
        (RESULTS / "racing.md").write_text(f"{said}\n\n{text}")


if __name__ == "__main__":
    main()
