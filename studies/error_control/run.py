"""How often does the default rule of a race err, if it looks after every batch?

Dropped: how often a given algorithm that a user would miss is ever dropped, at a known end of N
instances and without one. A race never stops by itself here, which is the worst case. Tied: how
often a pair is called tied although one is worse by more than the margin. Kept: how often both are
called worth running although one is behind by half the margin everywhere.

Run: python studies/error_control/run.py [--races 500] [--quick]
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.inference.e_values import Shares, multiplicity
from polarbear.inference.replacing import (
    Duels,
    DuelTally,
    PairEvidence,
    find_stretches,
    weigh,
)
from polarbear.racing.budget import Budget
from polarbear.racing.questions.replacements import Shown, drop_replaceable
from polarbear.simulation import draw_persistent_noise

QUICK_CPU_SECONDS = 6

T, MARGIN, WIDTH, CERTAINTY = 20, 0.1, 0.1, 0.95
ENDS = (8, 12, 24, 60, 120)
OPEN_END = 1000
PERSISTENCE = (0.0, 0.5, np.inf)
TIMES = np.linspace(0, 1, T)
STRETCHES = find_stretches(TIMES + 1, WIDTH)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """A truth: utilities (T, n), the share of instances on which all tie, and what is counted."""

    name: str
    utilities: Floats
    at_risk: tuple[int, ...]  # who would be missed
    ties: float = 0.0
    counts: str = "dropped"  # or "tied", "kept", "lost"
    joins: tuple[int, ...] = ()  # after how many instances each of the last algorithms joins

    @property
    def entries(self) -> tuple[int, ...]:
        """After how many instances each algorithm joins."""
        return (0,) * (self.utilities.shape[1] - len(self.joins)) + self.joins


def log_odds(win: float) -> float:
    """Return the lead in utility with which an algorithm wins that often."""
    return float(np.log(win / (1 - win)))


def pair_with(leads: Floats | float) -> Floats:
    """Return utilities of two algorithms, given the leads of the first one over time."""
    utilities = np.zeros((T, 2))
    utilities[:, 0] = leads
    return utilities


def boundary(decided: float = 1.0) -> float:
    """Return the lead at which the first is behind by exactly the margin, if duels may tie."""
    # Worse means below 40 % of the decided duels, and losses above wins by 10 % of all.
    least = min(0.5 - MARGIN, 0.5 - MARGIN / (2 * decided))
    return log_odds(max(least, 0.01))


def list_settings() -> list[Setting]:
    """Return the truths at which errors are most likely."""
    high = log_odds(0.8)
    some, last, crossing = np.full((3, T), high)
    some[8:11], last[-2:], crossing[T // 2 :] = boundary(), boundary(), -high
    settings = [
        Setting("two equal", np.zeros((T, 2)), (0, 1)),
        Setting("five equal", np.zeros((T, 5)), tuple(range(5))),
        Setting("twenty equal", np.zeros((T, 20)), tuple(range(20))),
        Setting("ahead by the margin at 3 of 20 times", pair_with(some), (1,)),
        Setting("ahead by the margin at the last times", pair_with(last), (1,)),
        Setting("tied: ahead by the margin at 3 times", pair_with(some), (1,), counts="tied"),
        Setting("tied: a clear crossing", pair_with(crossing), (1,), counts="tied"),
        Setting("kept: behind by half the margin", pair_with(log_odds(0.55)), (1,), counts="kept"),
    ]
    for share in (0.5, 0.85):
        settings.append(Setting(f"two equal, {share:.0%} ties", np.zeros((T, 2)), (0, 1), share))
        dip = np.full(T, high)
        dip[8:11] = boundary(1 - share)
        name = f"ahead by the margin at 3 times, {share:.0%} ties"
        settings.append(Setting(name, pair_with(dip), (1,), share))
    chain = np.zeros((T, 3))
    chain[8:11, 2] = -boundary()
    chain[:8, 2] = chain[11:, 2] = -high
    settings.append(Setting("a clone of its rival", chain, (2,)))
    settings.append(
        Setting("two equal, six equal join", np.zeros((T, 8)), (0, 1), joins=(4, 4, 8, 8, 16, 32))
    )
    # Each one is within the margin of the one before, but the last is ahead of the first by more.
    steps = np.outer(np.full(T, high), [2.0, 1.0, 0.0])
    steps[8:11] = np.array([0.0, 0.5, 1.0]) * -boundary()
    settings.append(Setting("a chain: the last is lost", steps, (2,), counts="lost"))
    return settings


def simulate(setting: Setting, races: int, n: int, persistence: float, seed: int) -> Floats:
    """Return costs (T, instances, races, algorithms)."""
    rng = np.random.default_rng(seed)
    size = setting.utilities.shape[1]
    noise = draw_persistent_noise(TIMES, (n, races, size), persistence, rng)
    costs = -(setting.utilities[:, None, None] + noise)
    if setting.ties:
        costs[:, rng.random((n, races)) < setting.ties] = 0.0
    return costs


def looks_until(n: int) -> list[int]:
    """Return after how many instances a race with the default batches looks."""
    looks, budget = [0], Budget()
    while looks[-1] < n:
        looks.append(min(n, looks[-1] + budget.batch_after(looks[-1])))
    return looks[1:]


def find_needed(entries: tuple[int, ...]) -> Floats:
    """Return the log e-values with which row replaces column, if all error is on the way."""
    size = len(entries)
    needed = np.zeros((size, size))
    for b, entry in enumerate(entries):
        present = sum(one <= entry for one in entries) - 1
        later = sorted(range(size), key=lambda a: (entries[a], a))
        for a in range(size):
            later_rank = later.index(a) - present if entries[a] > entry else 0
            needed[a, b] = np.log(multiplicity(present, later_rank) / (1 - CERTAINTY))
    return needed


def tally_costs(costs: Floats) -> DuelTally:
    """Return the results of all pairs of all races on some instances."""
    _, n, races, size = costs.shape
    first, second = list_pairs(races, size)
    duels = Duels.of(first, second, costs.reshape(T, n, races * size), STRETCHES, np.ones(n))
    return DuelTally.of(duels, STRETCHES)


def list_pairs(races: int, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first and the second algorithm of each pair of each race."""
    a, b = np.triu_indices(size, 1)
    start = np.arange(races)[:, None] * size
    return (start + a).ravel(), (start + b).ravel()


def find_shown(tally: DuelTally, n: int, shares: Shares, entries: tuple[int, ...]) -> Shown:
    """Return what is shown of all pairs of all races, after n instances."""
    size = len(entries)
    races = len(tally.leads) * 2 // (size * (size - 1))
    first, second = list_pairs(races, size)
    evidence = PairEvidence.empty(len(STRETCHES), (races * size, size))
    weigh(evidence, ((first, second % size), (second, first % size)), tally, MARGIN)
    return Shown.of((evidence,), np.tile(find_needed(entries), (races, 1)), CERTAINTY, shares, n)


def find_lost(shown: Shown, heirs: list[dict[int, int]]) -> NDArray[np.bool_]:
    """Return who (races, n) was dropped for the first algorithm; ``heirs`` of each race go on."""
    races = len(heirs)
    found = np.zeros((races, 3), dtype=bool)
    replaces, stands_in = (
        one[0].reshape(races, 1, 3, 3) for one in (shown.replaces, shown.stands_in)
    )
    proof = shown.proof.reshape(races, 3, 3)
    for k in range(races):
        one: Any = SimpleNamespace(replaces=replaces[k], stands_in=stands_in[k], proof=proof[k])
        racing = np.array([a not in heirs[k] for a in range(3)])
        heirs[k] = drop_replaceable(one, racing, heirs[k])
        found[k] = [heirs[k].get(a) == 0 for a in range(3)]
    return found


def count_errors(setting: Setting, races: int, n: int, persistence: float, seed: int) -> float:
    """Return the share of members (or races) with the error of a setting, ever until n."""
    known_end, size = n < OPEN_END, setting.utilities.shape[1]
    costs = simulate(setting, races, n, persistence, seed)
    wrong: NDArray[np.bool_] = np.zeros(1, dtype=bool)
    heirs: list[dict[int, int]] = [{} for _ in range(races)]
    tally, before, entries = None, 0, setting.entries
    for look in looks_until(n):
        new = tally_costs(costs[:, before:look])
        tally, before = new if tally is None else tally.join(new), look
        shares = Shares.at_end_of(n) if known_end else Shares()
        if look < n:
            shares = shares._replace(now=0.0)
        shown = find_shown(tally, look, shares, entries)
        if setting.counts == "dropped":
            present = [k for k in range(size) if entries[k] <= look]
            replaces = shown.replaces[0].reshape(races, size, size)[:, present]
            found = replaces.any(axis=1)[:, list(setting.at_risk)]
        elif setting.counts == "lost":
            found = find_lost(shown, heirs)[:, list(setting.at_risk)]
        else:
            within = (shown.evidence.no_worse[0] >= shown.level).all(axis=0)
            within = within.reshape(races, size, size)
            ahead = shown.evidence.is_ahead_somewhere()[0].reshape(races, size, size)
            holds = within if setting.counts == "tied" else ahead
            found = (holds & holds.swapaxes(1, 2))[:, 0, 1:2]
        wrong = wrong | found
    return float(np.mean(wrong))


def main() -> None:
    """Print a table: a row for each setting and persistence, a column for each end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--races", type=int, default=2000, help="of two algorithms; of more, or endless ones, fewer"
    )
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    options = parser.parse_args()
    ends = (8, 24) if options.quick else (*ENDS, OPEN_END)
    head = f"| setting | L | {' | '.join(f'N = {n}' for n in ends)} |"
    lines = [head.replace(f"N = {OPEN_END}", "open end"), "|---" * (2 + len(ends)) + "|"]
    print(*lines, sep="\n")
    for setting in list_settings():
        for persistence in PERSISTENCE[:1] if options.quick else PERSISTENCE:
            rates = []
            for n in ends:
                size = setting.utilities.shape[1]
                cells = T * n * size * size
                wanted = options.races / (4 if n == OPEN_END else 1)
                races = 20 if options.quick else max(40, round(wanted * min(1, 8 / size**2)))
                at_once = max(1, min(races, 8_000_000 // cells))
                parts = [
                    count_errors(setting, at_once, n, persistence, seed)
                    for seed in range(max(1, round(races / at_once)))
                ]
                rates.append(f"{np.mean(parts):.3f}")
            line = f"| {setting.name} | {persistence:g} | {' | '.join(rates)} |"
            lines.append(line)
            print(line, flush=True)
    if not options.quick:
        text = "\n".join(lines) + "\n"
        (Path(__file__).parent / "table.md").write_text(text)


if __name__ == "__main__":
    main()
