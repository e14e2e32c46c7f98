"""A reader in a package of somebody else: what it needs, and that everything finds it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import polarbear as pb
from polarbear.readers import check_reader

PLUGIN = Path(__file__).parent / "plugin"
sys.path.insert(0, str(PLUGIN))

from lines_reader import read_lines  # noqa: E402 # pyright: ignore[reportMissingImports]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "runs").mkdir()
    for algorithm, last in [("swift", 4.0), ("calm", 1.0)]:
        for seed in range(4):
            path = tmp_path / "runs" / f"{algorithm}-tsp{seed}-{seed}.lines"
            path.write_text(f"1 9.0\n5 {last + seed}\n")
    return tmp_path / "runs"


def test_a_reader_that_keeps_all_promises(folder):
    runs = check_reader(read_lines, folder)
    assert runs.algorithms == ("calm", "swift")
    assert check_reader(read_lines, folder / "calm-tsp0-0.lines").algorithms == ("calm",)


def refuses_nothing(source):
    return make_runs(source, source.ending(".lines"))


def names_no_file(source):
    return make_runs(source, source.ending(".lines") or refuse())


def depends_on_the_path(source):
    return make_runs(source, source.ending(".lines") or refuse(), algorithm=source.label[-4:])


def make_runs(source, names, algorithm="a"):
    values = [float(source.lines(name)[0].split()[1]) for name in names]
    named = zip(names, values, strict=True)
    runs = [pb.Run(algorithm, name, [1.0], [value], 1.0) for name, value in named]
    return pb.Runs.from_records(runs, direction="minimize")


def refuse():
    raise pb.readers.Refused("no file ends in .lines")


@pytest.mark.parametrize(
    ("careless", "why"),
    [
        (refuses_nothing, "must raise Refused"),
        (names_no_file, "is empty.*DataError.*IndexError"),
        (depends_on_the_path, "zip archive"),
    ],
)
def test_a_promise_that_is_not_kept_is_named(folder, careless, why):
    with pytest.raises(AssertionError, match=why):
        check_reader(careless, folder)


def test_an_installed_package_adds_its_format_everywhere(folder, tmp_path):
    """Built as a wheel, and unpacked where Python looks for packages, as an installer does."""
    wheel = pytest.importorskip("hatchling.builders.wheel")
    (built,) = wheel.WheelBuilder(str(PLUGIN)).build(directory=str(tmp_path))
    site = tmp_path / "site"
    zipfile.ZipFile(built).extractall(site)
    paths = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))

    code = (
        "import sys; from polarbear.cli.main import main\n"
        "for more in [], ['--format=lines'], ['--format=linse']: main(['read', sys.argv[1], *more])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.stdout.count("8 runs: 2 algorithms on 4 instances") == 2, done.stderr
    assert "--format linse: expected one of" in done.stderr
    assert ", solved, lines, parquet, " in done.stderr


def test_a_file_of_another_program_with_the_same_ending_is_refused(folder):
    def takes_all(source):
        return make_runs(source, source.ending(".lines", ".json") or refuse())

    with pytest.raises(AssertionError, match="for package.json, the reader must raise Refused"):
        check_reader(takes_all, folder)
