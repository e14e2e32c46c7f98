"""Races whose coordinator is killed again and again: what was acknowledged is there, once.

    python tests/support/killing.py    # 100 kills on SQLite, 30 on PostgreSQL, and a table of it

A coordinator is a child process that opens the store, restores the race, asks, runs and appends,
and says how many events were acknowledged. It gets a SIGKILL at a random moment, from before the
store is open until the race is at its end; then the next one goes on. ``tests/faults`` does the
same to ``race`` itself, with runs that are processes.
"""

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import servers
from course import decisions, told
from polarbear.errors import StoreError
from polarbear.racing.budget import Budget
from polarbear.racing.events import Told
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.racing.state import key_of
from polarbear.running.solvers.processes import fork
from polarbear.store.opening import open_store
from racers import race_of, restore, solve

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "store_kills.md"
NAMES = ("early", "late", "good", "twin", "bad")  # two of them are never settled
SETTING = {"question": ParetoSet(certainty=0.99), "budget": Budget(batch=(2, 8), runs=240)}
BATCH = 3


class Toll(NamedTuple):
    """What all kills together did."""

    kills: int = 0
    races: int = 0
    runs: int = 0  # in the finished races
    while_opening: int = 0  # kills before the store was open
    stored_unsaid: int = 0  # kills between a commit and its acknowledgement
    lost: int = 0  # acknowledged events that were not there afterwards
    twice: int = 0
    different: int = 0  # races that ended otherwise than the undisturbed one
    left: int = 0  # processes two seconds after a kill

    @property
    def harmless(self):
        return (self.lost, self.twice, self.different, self.left) == (0, 0, 0, 0)


class Life(NamedTuple):
    """One life of a coordinator: what it said, whether it came to the end, who outlived it."""

    said: list[int]
    ended: bool
    left: int = 0


def coordinate(where, seed, say):
    """One life of a coordinator."""
    with open_store(where) as store:
        say(store.n_events)
        race = restore(store.read()) if store.n_events else race_of(NAMES, **SETTING, seed=seed)
        stored = store.n_events
        while True:
            jobs = race.ask()
            store.append(race.events[stored:])
            stored = len(race.events)
            say(stored)
            if not jobs:
                return
            for job in jobs[:BATCH]:
                race.tell(solve(job))


def live(where, seed, seconds):
    """A coordinator that is killed after a while."""
    ear, mouth = os.pipe()
    child = fork()
    if child == 0:
        os.close(ear)
        code = 1
        try:
            coordinate(where, seed, lambda number: os.write(mouth, number.to_bytes(8, "little")))
            code = 0
        finally:
            os._exit(code)
    os.close(mouth)
    end = time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        time.sleep(0.001)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
            break
    status = ended[1]
    with os.fdopen(ear, "rb") as said:
        words = said.read()
    assert not (os.WIFEXITED(status) and os.WEXITSTATUS(status)), "the coordinator failed"
    return Life(numbers(words), os.WIFEXITED(status))


def numbers(words):
    """What was said, without a word that was cut off."""
    return [int.from_bytes(words[k : k + 8], "little") for k in range(0, len(words) // 8 * 8, 8)]


def undisturbed(seed):
    """The events of a race that nobody kills."""
    race = race_of(NAMES, **SETTING, seed=seed)
    while jobs := race.ask():
        for job in jobs[:BATCH]:
            race.tell(solve(job))
    return race.events


def stored(where):
    """The events in a store; none if there is none yet."""
    try:
        with open_store(where, read_only=True) as store:
            return list(store.read())
    except StoreError as error:
        if "no such" not in str(error):
            raise
        return []


def killed(place, kills, longest, seed=0, live=live, undisturbed=undisturbed):
    """So many kills, over as many races as it takes; ``place`` gives a new store for each."""
    rng = random.Random(seed)
    toll = Toll()
    while toll.kills < kills:
        where, whole, before, ended = place(), undisturbed(toll.races), [], False
        while not ended:
            seconds = rng.uniform(0, longest) if toll.kills < kills else 600
            said, ended, left = live(where, toll.races, seconds)
            said_last = max(said, default=len(before))
            events = stored(where)
            same = events[: len(before)] == before
            runs = Counter(key_of(event.run) for event in events if isinstance(event, Told))
            toll = toll._replace(
                kills=toll.kills + (not ended),
                while_opening=toll.while_opening + (not said),
                stored_unsaid=toll.stored_unsaid + (len(events) > said_last),
                lost=toll.lost + max(0, said_last - len(events)) + (not same),
                twice=toll.twice + sum(number - 1 for number in runs.values()),
                left=toll.left + left,
            )
            before = events
        alike = decisions(before) == decisions(whole) and told(before) == told(whole)
        toll = toll._replace(
            races=toll.races + 1,
            runs=toll.runs + len(runs),
            different=toll.different + (not alike),
        )
    return toll


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        count = iter(range(10**6))
        rows.append(("SQLite", killed(lambda: f"{folder}/{next(count)}.db", 100, 0.25)))
        if not servers.why_not():
            server = servers.Server()
            try:
                rows.append(("PostgreSQL", killed(lambda: f"{server.url}#{next(count)}", 30, 0.5)))
            finally:
                server.remove()
    heads = [field.replace("_", " ") for field in Toll._fields]
    lines = [
        "Made by `python tests/support/killing.py`, which says what is done and what is counted.",
        "",
        f"| store | {' | '.join(heads)} |",
        "|---" * (len(heads) + 1) + "|",
        *(f"| {name} | {' | '.join(map(str, toll))} |" for name, toll in rows),
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    sys.stdout.write(RESULTS.read_text())


if __name__ == "__main__":
    main()
