"""Reader of COCO/BBOB archives: ``.info`` indices with ``.dat`` and ``.tdat`` files."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from polarbear._text import format_count
from polarbear.data.run import Direction, Run
from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.readers.info import Block, parse_blocks
from polarbear.readers.naming import RunName, RunNaming
from polarbear.readers.source import (
    Refused,
    Source,
    parse_number,
    parse_time,
    prefix_errors,
    resolve_direction,
    split_packing,
)

Rows = list[tuple[float, float]]


def read_coco(
    source: Source,
    *,
    direction: Direction | None = None,
    clock: str = "evaluations",
    names: str | None = None,
) -> Runs:
    """Read logs of COCO: the best f - f_opt over evaluations, minimised.

    Both records of a run, at targets (``.dat``) and at evaluation counts (``.tdat``), are joined.
    Logs of several objectives hold an indicator, such as how much hypervolume is missing to a
    reference value. It is read as the value, and the order of the runs says so.
    """
    indices = [n for n in source.ending(".info") if "IOHprofiler" not in n.rsplit("/", 1)[-1]]
    if not indices:
        raise Refused("no .info file of COCO")
    naming = RunNaming(source, indices, names)
    records: list[Run] = []
    seen: Counter[RunName] = Counter()
    orders = set[str]()
    for index in naming.files:
        with prefix_errors(index):
            lines = source.lines(index)
            if not re.search(r"\b(funcId|indicator)\s*=", lines[0]):
                raise Refused(f"{index} does not begin with the description of a function")
            indicator = re.search(r"\bindicator\s*=\s*'(\w*)'", lines[0])
            orders.add(f"the indicator {indicator[1]} of COCO" if indicator else "")
            for block in _merge_blocks(parse_blocks(lines)):
                for run in _read_block(source, index, block, indicator is not None):
                    name = naming.rename_run(index, RunName(run.algorithm, run.instance))
                    records.append(
                        Run(*name[:2], *run[2:5], repetition=name.repetition + seen[name])
                    )
                    seen[name] += 1
    if not records:
        raise DataError(f"{source.label}: the .info files list no runs; name a folder with results")
    if len(orders) > 1:
        raise DataError(f"{source.label} holds different indicators: read each folder on its own")
    runs = Runs.from_records(
        records, direction=resolve_direction(direction, "minimize"), clock=clock
    )
    return replace(runs, stated_order=orders.pop())


_ADAT = re.compile(
    r"(?P<suite>.+)_f0*(?P<f>\d+)_i0*(?P<i>\d+)_d0*(?P<d>\d+)_nondom_(?P<kept>\w+)\.adat"
)


def read_coco_points(source: Source) -> Iterator[tuple[Run, tuple[str, ...]]]:
    """Yield the runs of COCO's archives of nondominated points (bbob-biobj), minimised.

    The algorithm is that of the ``.info`` files beside the folder ``archive``.
    """
    algorithms, seen = dict[str, str](), Counter[tuple[str, str]]()
    for index in source.ending(".info"):
        if match := re.search(r"\balgorithm\s*=\s*'([^']*)'", source.lines(index)[0]):
            algorithms[posixpath.dirname(index)] = match[1]
    for file in source.ending(".adat"):
        named = _ADAT.fullmatch(posixpath.basename(split_packing(file)[0]))
        if named is None:
            raise DataError(f"{file}: expected a name such as bbob-biobj_f01_i02_d02_nondom_all")
        folder = posixpath.dirname(posixpath.dirname(file))
        name = algorithms.get(folder, posixpath.basename(folder) or source.label)
        instance = f"{named['suite']} f{named['f']} d{named['d']} i{named['i']}"
        if named["kept"] == "final":
            raise DataError(
                f"{file}: holds the points of the end alone; log with log_nondominated: all"
            )
        for times, points, until in _read_points(source, file):
            number = seen[name, instance]
            yield (
                Run(
                    algorithm=name,
                    instance=instance,
                    time=times,
                    value=points,
                    until=max([until, *times]),
                    repetition=number,
                ),
                ("f1", "f2"),
            )
            seen[name, instance] += 1


def _read_points(
    source: Source, file: str
) -> list[tuple[list[float], list[tuple[float, ...]], float]]:
    """Return the times and points of each run in an archive, and its number of evaluations."""
    runs = list[tuple[list[float], list[tuple[float, ...]], float]]()
    for i, line in enumerate(source.lines(file), start=1):
        where, cells = f"{file}, line {i}", line.split()
        if re.match(r"%\s*instance\s*=", line):
            runs.append(([], [], 0.0))
        elif cells and (not runs or (cells[0] != "%" and len(cells) < 3)):
            raise DataError(f"{where}: expected '% instance =', then evaluations and 2 objectives")
        elif match := re.match(r"%\s*evaluations\s*=\s*(\d{1,18})\b", line):
            runs[-1] = *runs[-1][:2], float(match[1])
        elif cells and cells[0] != "%":
            runs[-1][0].append(parse_time(cells[0], where))
            runs[-1][1].append(tuple(parse_number(cell, where) for cell in cells[1:3]))
    return runs


def _merge_blocks(blocks: Iterable[Block]) -> list[Block]:
    """Return one block for each data file, which an index lists again for each pass of a suite."""
    merged = dict[str, Block]()
    for block in blocks:
        if block.file in merged:
            merged[block.file].runs.extend(block.runs)
        else:
            merged[block.file] = block
    return [*merged.values()]


def _read_block(source: Source, index: str, block: Block, is_indicator: bool) -> list[Run]:
    algorithm = block.about.get("algId") or block.need("algorithm")
    problem = f"f{block.need('funcId')} d{block.need('DIM')}"
    if suite := block.about.get("suite", ""):
        problem = f"{suite} {problem}"
    data = source.beside(index, block.file)
    by_target = _read_tables(source, data, is_indicator)
    by_time = [[] for _ in by_target]
    other = source.find(split_packing(data)[0].removesuffix(".dat") + ".tdat")
    if other:
        by_time = _read_tables(source, other, is_indicator)
    if not len(block.runs) == len(by_target) == len(by_time):
        raise DataError(
            f"line {block.line}: lists {len(block.runs)} runs, but {data} holds {len(by_target)}"
            + (f" and {other} holds {len(by_time)}" if other else "")
        )
    records = []
    for listed, *parts in zip(block.runs, by_target, by_time, strict=True):
        rows = [row for part in parts for row in part]
        instance = f"{problem} i{listed.instance}"
        last = max((time for time, _ in rows), default=0.0)
        records.append(
            Run(
                algorithm=algorithm,
                instance=instance,
                time=[time for time, _ in rows],
                value=[value for _, value in rows],
                until=max(last, listed.evaluations or 0.0),
            )
        )
    return records


def _read_tables(source: Source, name: str, is_indicator: bool) -> list[Rows]:
    """Read the rows of each run in a data file; a line that starts with ``%`` begins a run."""
    # In all versions the first column counts evaluations and the third is the best so far. Logs of
    # an indicator have its value in the second column, and a head of four lines.
    column, begin = (1, "% instance") if is_indicator else (2, "%")
    tables: list[Rows] = []
    for i, line in enumerate(source.lines(name), start=1):
        if line.startswith(begin):
            tables.append([])
        elif line.strip() and not line.startswith("%"):
            where = f"{name}, line {i}"
            cells = line.split()
            if not tables or len(cells) <= column:
                raise DataError(
                    f"{where}: expected a number of evaluations and at least "
                    f"{format_count(column, 'further number')}, got {line[:40]!r}"
                )
            tables[-1].append((parse_time(cells[0], where), parse_number(cells[column], where)))
    return tables
