"""Every figure of the paper, redrawn from what the studies have kept.

It makes no runs and needs no solver: matplotlib and the extra classical (ECDF, AOCC, attainment).

python studies/paper/run.py --table   # all figures and tables again; two CPU minutes
python studies/paper/run.py --quick   # one race of each study; writes nothing
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from gpbbob.tables import write as write_gpbbob
from mabbob.tables import write as write_mabbob
from synthetic.run import write as write_synthetic
from tools.markdown import table

QUICK_CPU_SECONDS = 15

STUDIES = Path(__file__).parents[1]
BENCHMARKS = STUDIES.parent / "benchmarks"

FIGURES = {
    "1": "benchmarks/results/inference-growth.png",
    "2": "studies/synthetic/figures/crossing-paper-rounds.png",
    "3": "studies/synthetic/figures/crossing-paper-course.png, near-paper-course.png",
    "4": "studies/synthetic/figures/winner-paper-rounds.png",
    "5": "studies/synthetic/figures/near-paper-rounds.png",
    "6": "studies/mabbob/figures/d30-T200-paper-classical.png",
    "7": "studies/mabbob/figures/d30-T200-paper-attained.png",
    "8": "studies/mabbob/figures/d30-T200-paper-rounds.png",
    "9": "studies/mabbob/figures/d30-T200-paper-end.png",
    "10": "studies/mabbob/figures/d30-T200-paper-course.png (right)",
    "11": "studies/gpbbob/figures/d240-30s-cpu-paper-rounds.png, d240-30s-cpu-paper-end.png",
    "12": "studies/gpbbob/figures/d240-30s-cpu-paper-course.png (left)",
    "13": "studies/gpbbob/figures/landscape.png",
}
"""Where the figures of the paper are, by their numbers there."""

SMALL = (
    "synthetic/results/races.jsonl",
    "synthetic/results/winner-paper.npz",
    "mabbob/results/d30-T200-paper",
    "gpbbob/results/landscape.npz",
)
"""What ``--quick`` draws."""


def redraw(root: Path, runtimes: Path) -> None:
    """Write figures and tables of the three studies in a folder, and the picture of runtimes."""
    for name, write in (
        ("synthetic", write_synthetic),
        ("mabbob", write_mabbob),
        ("gpbbob", write_gpbbob),
    ):
        write(root / name)
    # After the studies: both folders have a module called racing.
    sys.path.append(str(BENCHMARKS))
    found = json.loads((BENCHMARKS / "results" / "inference.json").read_text())
    import_module("inference").draw_growth(found, runtimes)


def copy(root: Path) -> None:
    """Copy what is small of the studies, to be drawn elsewhere."""
    for name in SMALL:
        source, target = STUDIES / name, root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="the default: there is nothing to run")
    parser.add_argument("--quick", action="store_true", help="small, and writes nothing")
    if parser.parse_args().quick:
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch)
            copy(root)
            redraw(root, root / "inference-growth.png")
            drawn = sorted(path.name for path in root.rglob("*.png"))
            print(*drawn, sep="\n")
        return
    redraw(STUDIES, STUDIES.parent / FIGURES["1"])
    print(table(["figure of the paper", "here"], [[key, path] for key, path in FIGURES.items()]))


if __name__ == "__main__":
    main()
