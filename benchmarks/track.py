"""What ``job.track`` costs per evaluation, over a bare Python wrapper around the objective.

Run it from the project's folder: python benchmarks/track.py [--check]
Both are timed in turns, a few times over, and the least of each counts.
"""

import argparse
import time

from polarbear.running.job import watched

CALLS = 200_000
ROUNDS = 15
LIMIT = 1.0  # microseconds


def objective(x):
    return x * x


def wrapped(function):
    """The least that a wrapper in Python can do."""

    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


def seconds(function):
    start = time.perf_counter()
    for _ in range(CALLS):
        function(0.5)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if it costs more than promised")
    check = parser.parse_args().check
    cases = {
        "evaluations": watched(None, horizon=1e18).track(objective),
        "wall": watched(None, horizon=1e18, clock="wall").track(objective),
    }
    bare = wrapped(objective)
    times = {name: [] for name in ("bare", *cases)}
    for _ in range(ROUNDS):
        times["bare"].append(seconds(bare))
        for name, function in cases.items():
            times[name].append(seconds(function))
    least = {name: 1e6 * min(found) / CALLS for name, found in times.items()}
    print(f"bare wrapper          {least['bare']:.3f} us per call")
    for name in cases:
        more = least[name] - least["bare"]
        print(f"track, {name:<14} {least[name]:.3f} us per call, {more:.3f} us more")
        if check and more > LIMIT:
            raise SystemExit(f"track costs {more:.2f} us more than a bare wrapper by {name}")


if __name__ == "__main__":
    main()
