"""What the commands of studies have in common."""

import argparse
import time
from dataclasses import replace

import polarbear as pb


def parser(said: str | None, slots: str = "runs at once") -> argparse.ArgumentParser:
    """``--hours``, ``--slots``, ``--quick`` and ``--table``; ``said`` is shown by ``--help``."""
    found = argparse.ArgumentParser(
        description=said, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--hours", type=float, help="ask for nothing new after so long")
    found.add_argument("--slots", type=int, default=2, help=slots)
    found.add_argument("--quick", action="store_true", help="small: does it run at all?")
    found.add_argument("--table", action="store_true", help="tables and figures from results/")
    return found


def within(budget: pb.Budget, hours: float | None) -> pb.Budget:
    """The budget, with a deadline from now on if there is one."""
    return budget if hours is None else replace(budget, deadline=time.time() + 3600 * hours)
