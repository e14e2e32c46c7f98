"""``WithTables``: how ``Runs`` become data frames and files."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.data import parquet
from polarbear.data.columns import Labels, make_frame, write_csv
from polarbear.data.instance_data import to_json
from polarbear.data.levels import WithLevels
from polarbear.data.run import STATUSES


@dataclass(frozen=True, eq=False)
class WithTables(WithLevels):
    """A base of ``Runs`` that writes them as tables."""

    def columns(self) -> dict[str, Labels | NDArray[Any]]:
        """Return the long table: a row per improvement, and one per run without improvements.

        The row of a run without a value has the value :attr:`worst`, so that :meth:`from_frame`
        makes the same ``Runs`` of the table.

        >>> import polarbear as pb
        >>> run = pb.Run("a", "x", [1, 3], [2.0, 1.0], until=9)
        >>> runs = pb.Runs.from_records([run], direction="minimize")
        >>> runs.columns()["value"], runs.columns()["until"]
        (array([2., 1.]), array([9., 9.]))
        """
        mine: Any = self
        rows = np.maximum(np.diff(mine.offset), 1)
        run = np.repeat(np.arange(len(mine)), rows)
        time, value = np.zeros(len(run)), np.full(len(run), mine.worst)
        has_value = np.repeat(np.diff(mine.offset) > 0, rows)
        time[has_value], value[has_value] = mine.time, mine.value
        names = [str(status) for status in STATUSES]
        values: dict[str, NDArray[Any]] = {"value": value}
        if mine.levels is not None:
            table = np.concatenate([mine.levels.table, [mine.levels.worst]])
            row = np.where(has_value, value, len(table) - 1).astype(np.int64)
            values = dict(zip(mine.levels.names, table[row].T, strict=True))
        return {
            "algorithm": Labels(mine.algorithm[run], mine.algorithms),
            "instance": Labels(mine.instance[run], mine.instances),
            "repetition": mine.repetition[run],
            "time": time,
            **values,
            "until": mine.until[run],
            "status": Labels(mine.status[run].astype(np.int32), names),
        }

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return the long table as a data frame of "pandas", "polars" or "pyarrow".

        >>> import polarbear as pb
        >>> run = pb.Run("a", "x", [1, 3], [2.0, 1.0], until=9)
        >>> runs = pb.Runs.from_records([run], direction="minimize")
        >>> runs.to_frame("pyarrow").column_names
        ['algorithm', 'instance', 'repetition', 'time', 'value', 'until', 'status']
        """
        return make_frame(self.columns(), backend)

    def to_parquet(self, path: Any) -> None:
        """Write the long table, its direction, its clock and the instance data to a Parquet file.

        >>> import io
        >>> import polarbear as pb
        >>> run = pb.Run("a", "x", [1, 3], [2.0, 1.0], until=9)
        >>> runs = pb.Runs.from_records([run], direction="minimize")
        >>> file = io.BytesIO()                       # or a path
        >>> runs.to_parquet(file)
        >>> pb.Runs.from_parquet(file) == runs
        True
        """
        mine: Any = self
        about: dict[str, Any] = {"direction": mine.direction, "clock": mine.clock}
        if mine.levels is not None:
            about |= {"direction": mine.levels.directions, "value": mine.levels.names}
        if not mine.best_so_far:
            about["best_so_far"] = False
        if mine.stated_order:
            about["stated_order"] = mine.stated_order
        if mine.instance_data:
            about["instance_data"] = to_json(mine.instances, mine.instance_data)
        parquet.write_parquet(path, self.columns(), about)

    def to_csv(self, path: Any) -> None:
        """Write the long table as CSV, which does not store the direction and the clock.

        Names are written as they are, also those that a spreadsheet would take for formulas.

        >>> import sys                                # sys.stdout, or a path
        >>> import polarbear as pb
        >>> runs = pb.Runs.from_records([pb.Run("a", "x", [1], [2.0], 9)], direction="minimize")
        >>> runs.to_csv(sys.stdout)
        algorithm,instance,repetition,time,value,until,status
        a,x,0,1.0,2.0,9.0,unstated
        """
        write_csv(path, self.columns())
