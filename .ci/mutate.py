"""Mutants of the modules that decide: small changes of their code that a test should notice.

python .ci/mutate.py              # all modules; writes tests/mutants.md again
python .ci/mutate.py dominance    # those whose name contains this

Each mutant runs only the tests that reach its line, the fastest first, in a process that is forked
when all is imported, and whose CPU time is limited. This is why no general tool is used: those
start Python for each mutant, or leave out methods with decorators.

A mutant that no test notices is killed by a new test, or explained in tests/mutants.md: the reasons
there are kept when the file is written again. Without a reason, this program fails.
"""

import argparse
import ast
import gc
import json
import math
import os
import re
import resource
import sys
import tempfile
import textwrap
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import SourceFileLoader
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import coverage
import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "polarbear"
TABLE = ROOT / "tests" / "mutants.md"
RACES = [
    "-m",
    "not slow",
    *(
        f"tests/racing/test_{name}.py"
        for name in ("state", "race", "limits", "longer", "withdrawn")
    ),
]
MODULES = {  # with the tests whose concern they are; each also has its own examples
    "inference/replacing.py": [
        "tests/inference/test_replacing.py",
        "tests/inference/test_chances.py",
    ],
    "racing/questions/replacements.py": ["tests/racing/test_shown.py"],
    "inference/e_values.py": ["tests/inference/test_e_values.py"],
    "inference/dominance.py": ["tests/inference/test_dominance.py"],
    "racing/state.py": RACES,
    "racing/pool.py": ["tests/racing/test_state.py"],
    "racing/ledger.py": ["tests/racing/test_state.py"],
    "racing/progress.py": ["tests/racing/test_state.py"],
}
MOST = 600
"""The most mutants of a module: of more, those whose hashes are the smallest are chosen."""

HEAD = """\
# Mutants

`nox -s mutation` writes this file. A mutant is a small change of a module that decides something:
another comparison or sign, a number one higher, a condition turned round, a call left out. It is
killed if a test of the module fails. Each one that survives is listed, with the reason why.

| module | mutants | tried | killed | score |
|---|---|---|---|---|"""

SWAPS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "/", ast.Mod: "*",
    ast.Pow: "*", ast.BitAnd: "|", ast.BitOr: "&", ast.And: "or", ast.Or: "and",
    ast.LShift: ">>", ast.BitXor: "|",
}  # fmt: skip
NAMES = {"min": "max", "any": "all", "minimum": "maximum", "argmin": "argmax"}
NAMES |= {other: name for name, other in NAMES.items()}


UNUSABLE = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)


class Mutant(NamedTuple):
    """A change of one place in a module."""

    lines: range  # of the statement
    where: str  # the function
    change: str
    source: str

    @property
    def key(self) -> str:
        """What the table calls it, without a number that other changes shift."""
        return f"{self.where}: {self.change}"


def find_mutants(source: str) -> list[Mutant]:
    r"""Return all mutants of a module, in the order of its code.

    >>> for one in find_mutants("def f(a, b: int = 2):\n    return not (a < b)"):
    ...     print(one.key)
    f: `def f(a, b: int = 2):` → `def f(a, b: int = 3):`
    f: `return not (a < b)` → `return (a < b)`
    f: `return not (a < b)` → `return not (a <= b)`
    """
    whole = f"{source}\n".encode()
    starts = [0, *(found.end() for found in re.finditer(b"\n", whole))]
    mutants = []

    def start(node: Any) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: Any) -> int:
        return starts[node.end_lineno - 1] + node.end_col_offset

    def replace(low: int, high: int, text: str) -> None:
        changed = whole[:low] + text.encode() + whole[high:]
        first, after = whole.rfind(b"\n", 0, low) + 1, low + len(text.encode())
        before = whole[first : whole.find(b"\n", high)].decode()
        now = changed[first : changed.find(b"\n", after)].decode()
        shown = (" ".join(one.split()) for one in (before, now))
        mutants.append(Mutant(lines, where, "`{}` → `{}`".format(*shown), changed.decode()))

    def replace_operator(left: ast.AST, right: ast.AST, operator: str) -> None:
        """Change the operator between two operands, which brackets and comments may surround."""
        gap = whole[end(left) : start(right)].decode()
        found = re.search(r"(?:#.*|[()\s])*([^()\s#]+(?: in| not)?)", gap)
        low = end(left) + len(gap[: found.start(1)].encode())
        replace(low, low + len(found[1]), operator)

    def mutate(node: ast.AST) -> None:
        match node:
            case ast.Compare(left, operators, others):
                for first, operator, second in zip(
                    [left, *others], operators, others, strict=False
                ):
                    replace_operator(first, second, SWAPS[type(operator)])
            case ast.BinOp(left, operator, right) if type(operator) in SWAPS:
                replace_operator(left, right, SWAPS[type(operator)])
            case ast.BoolOp(operator, values):
                replace_operator(values[0], values[1], SWAPS[type(operator)])
            case ast.AugAssign(target, operator, value) if type(operator) in SWAPS:
                replace_operator(target, value, SWAPS[type(operator)] + "=")
            case ast.UnaryOp(ast.Not()):
                replace(start(node), start(node) + len("not "), "")
            case ast.UnaryOp():
                replace(start(node), start(node) + 1, "")
            case ast.Constant(bool() as value):
                replace(start(node), end(node), str(not value))
            case ast.Constant(int() | float() as value):
                replace(start(node), end(node), repr(value + 1))
            case ast.Name(name) | ast.Attribute(_, name) if name in NAMES:
                replace(end(node) - len(name), end(node), NAMES[name])
            case ast.If(test) | ast.IfExp(test) if not isinstance(test, ast.Compare | ast.UnaryOp):
                text = whole[start(test) : end(test)].decode()
                replace(start(test), end(test), f"(not ({text}))")
            case ast.Expr(ast.Call()) | ast.Continue() | ast.Break() | ast.AugAssign():
                replace(start(node), end(node), "pass")

    def visit(node: Any) -> None:
        nonlocal lines, where
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return  # of zip, which checks what is true anyway
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        before = lines, where
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            lines = range(node.lineno, body[0].lineno if body else node.end_lineno + 1)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            where = f"{where}.{node.name}".lstrip(".")
        mutate(node)
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    # Places within f-strings are wrong before Python 3.12.
                    if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                        visit(child)
        lines, where = before

    lines, where = range(0), ""
    visit(ast.parse(source))
    return mutants


class Timer:
    """A plug-in of pytest that notes how long each test takes, and names it to coverage."""

    def __init__(self, tracer: coverage.Coverage) -> None:
        self.tracer, self.seconds = tracer, {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Run a test."""
        self.tracer.switch_context(item.nodeid)
        began = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - began
        return result


def run_pytest(*arguments: str, plugins: Sequence[object] = ()) -> int:
    """Run tests in this process until one fails, and print nothing."""
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        # Plain asserts: pytest would load what it rewrites from the file, without the mutant.
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--assert=plain"]
        return pytest.main([*options, *arguments], plugins=plugins)


def forget_modules() -> None:
    """Forget the modules of this project: they are imported again, those of others are not."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(ROOT)) and name != "__main__":
            del sys.modules[name]


def fork(work: Callable[[], int], cpu_seconds: float) -> int:
    """Do some work in a child process, whose CPU time is limited; return its id."""
    child = os.fork()
    if not child:
        code = 1
        try:
            seconds = math.ceil(cpu_seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            code = work()
        finally:
            os._exit(code)
    return child


def trace(module: Path, tests: list[str]) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Return which tests reach each line of a module, and how many seconds each test takes."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")

        def work() -> int:
            forget_modules()  # lines that are reached while a module is imported are noted too
            tracer = coverage.Coverage(data_file=None, include=[str(module)], config_file=False)
            timer = Timer(tracer)
            tracer.start()
            code = run_pytest(*tests, plugins=[timer])
            tracer.stop()
            reached = tracer.get_data().contexts_by_lineno(str(module))
            report.write_text(json.dumps([reached, timer.seconds]))
            return code

        if os.waitpid(fork(work, 3600), 0)[1]:
            raise SystemExit(f"the tests of {module} fail without any change: {tests}")
        reached, seconds = json.loads(report.read_text())
        return reached, seconds


def list_functions(code: CodeType) -> list[CodeType]:
    """Return the code of the functions of a module and its classes, in order."""
    parts = [one for one in code.co_consts if isinstance(one, CodeType)]
    return [
        function
        for one in parts
        # The body of a class has names of its own, and no variables that a function's has.
        for function in ([one] if one.co_flags & CO_OPTIMIZED else list_functions(one))
    ]


def find_functions(module: Path) -> list[FunctionType]:
    """Return the functions of an imported module, in order, whoever refers to them."""
    objects = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
    by_code = {one.__code__: one for one in objects if one.__code__.co_filename == str(module)}
    code = list_functions(compile(module.read_text("utf-8"), str(module), "exec"))
    return [by_code.get(one) for one in code]


def change_functions(module: Path, functions: list[FunctionType | None], mutant: Mutant) -> None:
    """Give the functions of an imported module the code of a mutant."""
    code = list_functions(compile(mutant.source, str(module), "exec"))
    for function, changed in zip(functions, code, strict=True):
        if function is not None:
            function.__code__ = changed


def change_import(module: Path, mutant: Mutant) -> None:
    """Let a module be imported as a mutant, with all that imports it."""
    load = SourceFileLoader.get_code

    def get_code(self, name):
        if Path(self.path).resolve() == module:
            return compile(mutant.source, self.path, "exec")
        return load(self, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    forget_modules()


def find_survivors(module: Path, tests: list[str], n_jobs: int) -> tuple[int, int, list[str]]:
    """Return how many mutants there are and were tried, and those that no test noticed."""
    mutants = find_mutants(module.read_text("utf-8"))
    tried = sorted(mutants, key=lambda one: zlib.crc32(one.key.encode()))[:MOST]
    began = time.monotonic()
    run_pytest("--collect-only", *tests)  # what is imported now need not be by each mutant
    reached, seconds = trace(module, tests)
    gc.unfreeze()  # what was frozen for the module before is not listed
    functions = find_functions(module)
    gc.freeze()  # a child need not look at what was there before
    running: dict[int, Mutant] = {}
    survivors = []

    def end_one() -> None:
        child, status = os.wait()
        mutant = running.pop(child)
        if os.waitstatus_to_exitcode(status) in UNUSABLE:
            raise SystemExit(f"pytest cannot run the tests of {mutant.key}")
        if status == 0:
            survivors.append(mutant)
            print(f"  {mutant.lines[0]}: {mutant.key}", flush=True)

    for mutant in tried:
        names = {name for line in mutant.lines for name in reached.get(str(line), ())}
        is_imported = "" in names
        names = sorted(seconds if is_imported else names, key=seconds.__getitem__)

        def work(mutant: Mutant = mutant, names=names, is_imported=is_imported) -> int:
            if is_imported:
                change_import(module, mutant)
            else:
                change_functions(module, functions, mutant)
            return run_pytest(*names)

        if len(running) == n_jobs:
            end_one()
        if names:
            running[fork(work, 5 + 5 * sum(map(seconds.__getitem__, names)))] = mutant
        else:
            survivors.append(mutant)
            print(f"  {mutant.lines[0]}, which no test reaches: {mutant.key}", flush=True)
    while running:
        end_one()
    survivors.sort(key=lambda one: (one.lines[0], one.key))
    print(f"  {len(tried)} mutants, {len(survivors)} survive, {time.monotonic() - began:.0f} s")
    return len(mutants), len(tried), [one.key for one in survivors]


class Result(NamedTuple):
    """How many mutants a module has, how many were tried, and why each survivor is one."""

    mutants: int
    tried: int
    survivors: dict[str, str]


def read_results() -> dict[str, Result]:
    """Return the results of the table that was written before."""
    text = TABLE.read_text("utf-8") if TABLE.exists() else ""
    results = {}
    row = re.compile(r"^\| (\S+\.py) \| (\d+) \| (\d+) \|", re.MULTILINE)
    for module, mutants, tried in row.findall(text):
        section = text.partition(f"## {module}\n")[2].partition("\n## ")[0]
        survivors = re.findall(r"^- (.*)\n((?:  .*\n)*)", section, re.MULTILINE)
        reasons = {key: " ".join(reason.split()) for key, reason in survivors}
        results[module] = Result(int(mutants), int(tried), reasons)
    return results


def write_results(results: dict[str, Result]) -> None:
    """Write the table, and each survivor with the reason."""
    rows, sections = [], []
    for module, (mutants, tried, survivors) in results.items():
        killed = tried - len(survivors)
        rows.append(f"| {module} | {mutants} | {tried} | {killed} | {killed / tried:.1%} |")
        if survivors:
            sections.append(f"\n## {module}\n")
        for key, reason in survivors.items():
            lines = textwrap.wrap(reason, 98, initial_indent="  ", subsequent_indent="  ")
            sections.append("\n".join([f"- {key}", *lines]))
    TABLE.write_text("\n".join([HEAD, *rows, *sections, ""]), "utf-8")


def main() -> int:
    """Try the mutants of the modules that are named, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", default=[".py"], help="parts of their names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    os.chdir(ROOT)
    # As many examples as in CI, and no search for a smaller one: modules of others stay loaded.
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile(
        "mutants", deadline=None, derandomize=True, max_examples=20, phases=phases
    )
    os.environ |= {"HYPOTHESIS_PROFILE": "mutants", "OPENBLAS_NUM_THREADS": "1"}
    before = read_results()
    results = before
    for module, tests in MODULES.items():
        if not any(part in module for part in arguments.modules):
            continue
        print(module, flush=True)
        file = SOURCE / module
        mutants, tried, keys = find_survivors(file, [*tests, str(file)], arguments.jobs)
        reasons = before[module].survivors if module in before else {}
        results = read_results()  # another process may have written others
        results[module] = Result(mutants, tried, {key: reasons.get(key, "") for key in keys})
        write_results({name: results[name] for name in MODULES if name in results})
    unexplained = [one for result in results.values() for one in result.survivors.values()].count(
        ""
    )
    print(f"{unexplained} mutants survive without a reason in {TABLE.relative_to(ROOT)}")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
