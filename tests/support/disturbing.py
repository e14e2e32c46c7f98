"""Races that are disturbed while they go on, against one that nobody disturbs."""

import os
import threading
from contextlib import contextmanager
from functools import cache

from judge.in_process import InProcess

import course
from course import decisions, run, told
from polarbear.racing.events import Told
from waiting import PATIENCE

LONG = int(os.environ.get("POLARBEAR_KILLS", "0")) >= 100
BUDGET = course.short() if LONG else course.short(60)

UNTIL_GONE = 2.0 if LONG else PATIENCE
"""Seconds after a kill when nobody may be left: two are promised, where nobody else is busy."""

CODE = "import course\nsolvers = course.solvers(0.02)\ninstances = course.instance\n"
"""What a worker of a folder loads."""


@cache
def undisturbed():
    return run(executor=InProcess(), budget=BUDGET).events


class Tally:
    """What came of the races so far."""

    def __init__(self):
        self.done = self.races = self.runs = self.twice = self.different = self.left = 0

    def race(self, events):
        runs = [event.run[:2] for event in events if isinstance(event, Told)]
        whole = undisturbed()
        alike = decisions(events) == decisions(whole) and told(events) == told(whole)
        self.races += 1
        self.runs += len(runs)
        self.twice += len(runs) - len(set(runs))
        self.different += not alike

    def report(self, report, what):
        # Nothing is said to be durable here before it is in the race that is compared.
        report(what, self.done, self.races, self.runs, 0, self.twice, self.different, self.left)
        assert (self.twice, self.different, self.left) == (0, 0, 0), vars(self)


@contextmanager
def meanwhile(work):
    """Do something again and again in a thread, until the block is left; its errors are raised."""
    over, errors = threading.Event(), []

    def loop():
        try:
            while not over.is_set():
                work(over)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if errors:
        raise errors[0]
