"""Damaged files: whatever is done to one, it is read or refused with its place, never a crash."""

import contextlib
import random
import time
import warnings
from pathlib import Path

import pytest

from polarbear import DataError, DataWarning, Runs, read

FILES = Path(__file__).parent / "files"
TOKENS = [
    b"nan", b"inf", b"-inf", b"1e400", b"-1", b"0", b"9" * 30, b"1_0", b"\x00", b"\xff\xfe", b"\n",
    b"\r", b",", b";", b"|", b":", b'"', b"'", b"%", b"{", b"[" * 50, b"}", b"]", b"null", b"true",
    b"../", b"../../etc/passwd", b"=", b" ", b"\t", "é\u2028٣".encode(), b"1,5", b"x" * 200,
]  # fmt: skip


def mutate(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, length = rng.randrange(len(data) + 1), rng.choice([1, 2, 8, 60])
        kind = rng.randrange(8)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = data[at : at + length]
        elif kind == 4:
            data[at : at + rng.choice([0, 3])] = rng.choice(TOKENS)
        elif kind == 5:
            data[at : at + length] = rng.randbytes(length)
        elif kind == 6:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            data = bytearray(b"\n".join(lines))
        else:
            lines = data.split(b"\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i] = lines[j]
            data = bytearray(b"\n".join(lines))
    return bytes(data)


LONG = (
    b"algorithm,instance,seed,time,value,until,status\n"
    b"CSA,f1,1,10,4.0,90,cut\nCSA,f1,1,80,0.5,90,cut\nRS,f1,1,10,3.0,90,crashed\n"
    b'RS,"f, 2",2,10,inf,90,finished\n'
)
NAMED = b"evals,best,status\n1,4.0,cut\n10,,cut\n100,0.5,cut\n"
WIDE = b"algorithm,instance,seed,100,t=1e3,time_5000\nA,f1,1,5,4,\nA,f1,2,,3,2\nB,f1,1,,,\n"
COCO = {
    "f1.info": b"suite = 'bbob', funcId = 1, DIM = 2, Precision = 1.000e-08, algId = 'rs'\n% note\n"
    b"data_f1/f1.dat, 1:60|1.6e-01, 2:40|1.2e-01",
    "data_f1/f1.dat": b"% f evaluations | g evaluations | best\n1 0 +2.1e+01 +1.0e+02\n"
    b"9 0 +1.6e-01 +1.0e+02\n% f evaluations | g\n1 0 +3.1e+00 +1.0e+02\n",
    "data_f1/f1.tdat": b"% f evaluations\n1 0 +2.1e+01 +1.0e+02\n60 0 +1.6e-01 +9e+01\n% f\n"
    b"1 0 +3.1e+00 +1.0e+02\n40 0 +1.2e-01 +1.0e+02\n",
}
IOH = {
    "IOHprofiler_f1_Sphere.json": b'{"version": "0.3.22", "suite": "BBOB", "function_id": 1,\n'
    b'"function_name": "Sphere", "maximization": false,\n"algorithm": {"name": "rs", "info": ""},\n'
    b'"attributes": ["evaluations", "raw_y"], "scenarios": [{"dimension": 2,\n'
    b'"path": "data_f1/f1.dat", "runs": [{"instance": 1, "evals": 60,\n'
    b'"best": {"evals": 9, "y": 0.16, "x": [1.0, 2.0]}},\n{"instance": 2, "evals": 60, "best":\n'
    b'{"evals": 1, "y": 3.1, "x": [1, 2]}}]}]}',
    "data_f1/f1.dat": b"evaluations raw_y\n1 21.5\n9 0.16\n60 8.0\n"
    b"evaluations raw_y\n1 3.1\n60 4\n",
}


def folder(name):
    return {p.relative_to(FILES / name).as_posix(): p.read_bytes()
            for p in sorted((FILES / name).rglob("*")) if p.is_file()}  # fmt: skip


CASES = {
    "csv": lambda: {"t.csv": LONG},
    "csv-named": lambda: {f"{a}/f_s{n}.csv": NAMED for a in "AB" for n in (1, 2)},
    "wide": lambda: {"t.csv": WIDE},
    "parquet": lambda: {"t.parquet": parquet_of_ours()},
    "ioh": lambda: IOH,
    "ioh-info": lambda: folder("ioh/ioh_0.3.1_info"),
    "coco": lambda: COCO,
    "benchopt": lambda: {"t.parquet": folder("benchopt")["benchopt_1.10.0.parquet"]},
    "nevergrad": lambda: {"t.csv": folder("nevergrad")["tiny.csv"][:3000].rsplit(b"\n", 1)[0]},
    "logs-highs": lambda: {"t.log": folder("highs")["gap_min.log"]},
    "logs-scip": lambda: {"t.log": folder("scip")["knap_max.log"]},
    "logs-o": lambda: {"clasp__t.log": folder("olines")["clasp_wcnf_timelimit_ts_hms.log"]},
}


def parquet_of_ours():
    import io

    import polarbear

    runs = polarbear.Runs.from_records(
        [polarbear.Run(a, i, [1, 5, 9], [3, 2, 1], 10) for a in "ab" for i in ("x", "y")],
        direction="minimize",
    )
    file = io.BytesIO()
    runs.to_parquet(file)
    return file.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("mutants", [400, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("case", CASES)
def test_damaged_files_are_read_or_refused(case, mutants, tmp_path):
    if case in ("parquet", "benchopt"):
        pytest.importorskip("pyarrow")
    files = CASES[case]()
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    options = {"format": case.split("-")[0]}
    if case in ("csv", "csv-named", "wide", "parquet"):
        options["direction"] = "minimize"
    if case == "csv-named":
        options |= {"names": "{algorithm}/{instance}_s{seed}.csv", "missing": "drop"}
        options["columns"] = {"time": ["evals"], "value": ["best"]}
    assert len(read(tmp_path, **options))
    rng = random.Random(f"damage {case}")
    outcomes = {"read": 0, "refused": 0}
    for _ in range(mutants):
        name = rng.choice(sorted(files))
        (tmp_path / name).write_bytes(mutate(files[name], rng))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", DataWarning)
                assert isinstance(read(tmp_path, **options), Runs)
            outcomes["read"] += 1
        except DataError as error:
            outcomes["refused"] += 1
            if not names_a_place(str(error), tmp_path, files):
                raise AssertionError(f"no place is named: {error}") from error
        (tmp_path / name).write_bytes(files[name])
    assert min(outcomes.values()) > mutants // 50, outcomes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", ",".join(map(str, range(30_000))) + "\n" + "1," * 29_999 + "1\n"),
        ("x.csv", ",".join(f"c{i}" for i in range(100_000)) + "\n"),
        ("x.info", "funcId = 1, a=1," + "b" * 1_000_000),
        ("x.info", "funcId = 1, " + "a = 'b, " * 100_000),
        ("a__b.log", "SCIP version 10\n" + ("0.0s|" + "|" * 1900 + "\n") * 500),
        ("a__b.log", "SCIP version 10\n" + ("0.0s|" + "| 1 " * 400 + "\n") * 500),
        ("a__b.log", "Running HiGHS 1\n" + (" R " + "1 " * 900 + "\n") * 500),
        ("a__b.log", ("0:" * 900 + " o 1\n") * 500),
        ("t.csv", "algorithm,instance,time,value\n" + "a,i,1,2\n" * 20_000),
    ],
)
def test_no_file_can_make_a_pattern_slow(name, content, tmp_path):
    (tmp_path / name).write_text(content)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        with contextlib.suppress(DataError):
            read(tmp_path, direction="minimize")
    assert time.process_time() - start < 5


def names_a_place(message: str, path: Path, files: dict[str, bytes]) -> bool:
    """A file or the folder, a column, or a run."""
    places = [*files, str(path), "column ", "run of algorithm", "repetition "]
    return any(place in message for place in places)
