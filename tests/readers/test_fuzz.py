"""Damaged files: whatever is done to one, it is read or refused with its place, never a crash."""

import bz2
import contextlib
import gzip
import random
import re
import tarfile
import time
import warnings
from pathlib import Path

import pytest

from polarbear import DataError, Runs, read
from polarbear.errors import DataWarning
from polarbear.readers.log_formats import LOG_FORMATS

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


def unpacked(name):
    return gzip.decompress((FILES / name).read_bytes())


def packed_folder(name):
    with tarfile.open(FILES / name) as archive:
        files = [member for member in archive if member.isfile()]
        return {member.name: archive.extractfile(member).read() for member in files[:24]}


ARFF = folder("aslib/CPMP-2015")["algorithm_runs.arff"].decode().split("BF10")[0]

STUDY = '{"op_code": 0, "study_name": "%s", "directions": [1]}\n'

CASES = {
    "csv": lambda: {"t.csv": LONG},
    "csv-named": lambda: {f"{a}/f_s{n}.csv": NAMED for a in "AB" for n in (1, 2)},
    "wide": lambda: {"t.csv": WIDE},
    "parquet": lambda: {"t.parquet": parquet_of_ours()},
    "ioh": lambda: IOH,
    "ioh-info": lambda: folder("ioh/ioh_0.3.1_info"),
    "coco": lambda: COCO,
    "aslib": lambda: folder("aslib/CPMP-2015"),
    "benchexec": lambda: {
        name.removesuffix(".bz2"): bz2.decompress(content)
        for name, content in folder("benchexec").items()
    },
    "benchopt": lambda: {"t.parquet": folder("benchopt")["benchopt_1.10.0.parquet"]},
    "nevergrad": lambda: {"t.csv": folder("nevergrad")["tiny.csv"][:3000].rsplit(b"\n", 1)[0]},
    "highs": lambda: {"t.log": folder("highs")["gap_min.log"]},
    "scip": lambda: {"t.log": folder("scip")["knap_max.log"]},
    "o-lines": lambda: {"clasp__t.log": folder("olines")["clasp_wcnf_timelimit_ts_hms.log"]},
    "cpsat": lambda: log_of("cpsat/default__knap60__1.log"),
    "routing": lambda: log_of("routing/gls__vrp60__0.log"),
    "gurobi": lambda: log_of("gurobi/default__knap100__2.log"),
    "xpress": lambda: log_of("xpress/default__cover400__1.log"),
    "copt": lambda: log_of("copt/default__cover400__1.log"),
    "cbc": lambda: log_of("cbc/pulp__knap100__1.log"),
    "cplex": lambda: log_of("cplex/default__tiny__1.log", stamp=True),
    "glpk": lambda: log_of("glpk/default__tiny__1.log", stamp=True),
    "toulbar2": lambda: log_of("toulbar2/toulbar2__cover200__1.log"),
    "gurobi-stamped": lambda: log_of("gurobi/default__tiny__1.log", stamp=True),
    "minizinc": lambda: log_of("minizinc/bc-2.10__tsp14__1.jsonl"),
    "timefold": lambda: log_of("timefold/ls__jobs40__0.log"),
    "optuna-db": lambda: {"t.db": unpacked("optuna/optuna_5.0.0.db.gz")},
    "optuna-journal": lambda: {"t.journal": unpacked("optuna/optuna_3.6.2.journal.gz")[:30_000]},
    "smac": lambda: folder("smac/smac_2.4.1/mf-sphere"),
    "smac-lists": lambda: folder("smac/smac_2.0.2"),
    "syne_tune": lambda: folder("syne_tune/syne_tune_0.16.0"),
    "carps": lambda: folder("carps/runs/Optuna-TPE"),
    "carps-parquet": lambda: {"t.parquet": folder("carps")["gathered_logs.parquet"]},
    "mlflow-db": lambda: {"t.db": unpacked("mlflow/mlflow_3.17.2.db.gz")},
    "mlflow-folder": lambda: packed_folder("mlflow/mlruns_2.9.2.tar.gz"),
}


def log_of(path: str, *, stamp: bool = False) -> dict[str, bytes]:
    """A log, without lines that say nothing about the run, so that it is short."""
    lines = gzip.decompress((FILES / f"{path}.gz").read_bytes()).split(b"\n")
    if path.startswith(("cpsat", "cbc")):
        lines = [line for line in lines if not line.startswith((b"  ", b"[", b"Cbc0038I"))]
    if stamp:
        lines = [b"%.6f %s" % (0.25 * i, line) for i, line in enumerate(lines)]
    return {Path(path).name: b"\n".join(lines)}


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


def test_all_logs_are_damaged():
    assert {log.name for log in LOG_FORMATS} <= CASES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("mutants", [30, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("case", CASES)
def test_damaged_files_are_read_or_refused(case, mutants, tmp_path):
    if case in ("parquet", "benchopt", "carps-parquet"):
        pytest.importorskip("pyarrow")
    if case.startswith("optuna"):
        pytest.importorskip("optuna")
    files = CASES[case]()
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(content)
    variants = "named|info|db|journal|lists|parquet|folder|stamped"
    options = {"format": re.sub(f"-({variants})$", "", case)}
    if case in ("csv", "csv-named", "wide", "parquet"):
        options["direction"] = "minimize"
    if case == "csv-named":
        options |= {"names": "{algorithm}/{instance}_s{seed}.csv", "missing": "drop"}
        options["columns"] = {"time": ["evals"], "value": ["best"]}
    if case.startswith("optuna"):
        options |= {"names": "{algorithm}-{instance}-{repetition}", "direction": "minimize"}
    if case.startswith("mlflow"):
        options |= {"value": "val_loss", "direction": "minimize", "algorithm": "model"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert len(read(tmp_path, **options))
    rng = random.Random(f"damage {case}")
    outcomes = {"read": 0, "refused": 0}
    for _ in range(mutants):
        name = rng.choice(sorted(files))
        (tmp_path / name).write_bytes(mutate(files[name], rng))
        start = time.process_time()
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
        assert time.process_time() - start < 5
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
        ("a__b.log", "Gurobi Optimizer version 1\n" * 20_000),
        ("a__b.log", "0.1 Gurobi Optimizer version 1\n" * 20_000),
        ("a__b.log", "0.1 Gurobi Optimizer version 1\n" + "1" * 1_000_000),
        ("a__b.log", "Gurobi Optimizer version 1\n" + ("H 0 0" + " 1" * 900 + " 1s\n") * 500),
        ("a__b.log", "Gurobi Optimizer version 1\n" + ("H 0 0 " + "1" * 1900 + "\n") * 500),
        ("a__b.log", "Starting CP-SAT solver v9\n" + ("#1 1s best:1 next:[" + "1," * 900) * 500),
        ("a__b.log", "FICO Xpress v9\n" + ("a " + "1.1 " * 450 + "\n") * 500),
        ("a__b.log", "FICO Xpress v9\n" + ("1" * 1900 + "\n") * 500),
        ("a__b.log", "Using Cardinal Optimizer v8\n" + ("H" + " 1" * 900 + "\n") * 500),
        ("a__b.log", "Welcome to the CBC MILP Solver\n" + ("Cbc0012I " + "(1 " * 600 + "\n") * 500),
        (
            "a__b.log",
            "search.cc:1] Start search (\n"
            + ("search.cc:1] Solution #1 (1, " + "a=b, " * 350 + "\n") * 500,
        ),
        ("a__b.log", "0.1 CPXPARAM_X 1\n" + ("0.1 * 1" + " 1" * 900 + "\n") * 500),
        (
            "a__b.log",
            "0.1 GLPK Integer Optimizer\n" + ("0.1 + 1: mip = " + "1 >= " * 350 + "\n") * 500,
        ),
        (
            "a__b.log",
            "0.1 c toulbar2 version\n" + ("0.1 Optimality gap: [" + "1, " * 600 + "\n") * 500,
        ),
        ("a__b.jsonl", '{"type": "status"' + "[" * 200_000 + "\n" + '{"type": "exit"}\n' * 20_000),
        (
            "a__b.log",
            "Solving started: time spent (1), best score (\n" + ("time spent (" * 150 + "\n") * 500,
        ),
        ("algorithm_runs.arff", ARFF + ("x,1,a," + " " * 9_000 + "'1,ok\n") * 100),
        ("algorithm_runs.arff", ARFF + ("'" * 9_000 + "\n") * 100),
        ("b.results.xml", '<result tool="t">' + "<run><a>" * 100_000),
        ("t.csv", "algorithm,instance,time,value\n" + "a,i,1,2\n" * 20_000),
        ("t.journal", "".join(STUDY % f"a-{i}-1" for i in range(2_000))),
        ("t.journal", STUDY % ("a-" * 200_000)),
        ("t.journal", STUDY % "a__b" + '{"op_code": 4, "study_id": 0}\n' * 20_000),
        ("meta.yaml", "run_id: a\nartifact_uri: b\n" + "x" * 1_000_000 + ":" * 1_000_000),
    ],
)
def test_no_file_can_make_a_pattern_slow(name, content, tmp_path):
    (tmp_path / name).write_text(content)
    if name.endswith(".journal"):
        pytest.importorskip("optuna")
    if name.endswith(".arff"):
        (tmp_path / "description.txt").write_bytes(folder("aslib/CPMP-2015")["description.txt"])
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
