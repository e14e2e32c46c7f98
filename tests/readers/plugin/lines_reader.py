"""A package of somebody else: files `<algorithm>-<instance>-<seed>.lines` of times and values."""

from pathlib import PurePosixPath

import polarbear as pb
from polarbear.readers.source import parse_number, parse_time


def read_lines(source, *, direction=None, clock="seconds"):
    """Read files that end in .lines."""
    if not (names := source.ending(".lines")):
        raise pb.readers.Refused("no file ends in .lines")
    runs = []
    for name in names:
        algorithm, instance, seed = PurePosixPath(name).stem.split("-")
        times, values = [], []
        for number, line in enumerate(source.lines(name), start=1):
            if not line:
                continue
            where = f"{name}: line {number}"
            if len(tokens := line.split()) != 2:
                raise pb.DataError(f"{where}: expected a time and a value")
            times.append(parse_time(tokens[0], where))
            values.append(parse_number(tokens[1], where))
        runs.append(pb.Run(algorithm, instance, times, values, max(times, default=0), int(seed)))
    return pb.Runs.from_records(runs, direction=direction or "minimize", clock=clock)
