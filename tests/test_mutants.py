"""The program that makes mutants, and what is said of those that survive (tests/mutants.md)."""

import doctest
import sys
from importlib import util
from pathlib import Path

import pytest

pytest.importorskip("coverage")
CI = Path(__file__).parents[1] / ".ci"


@pytest.fixture(scope="module")
def mutate():
    spec = util.spec_from_file_location("mutate", CI / "mutate.py")
    module = util.module_from_spec(spec)
    sys.modules["mutate"] = module
    spec.loader.exec_module(module)
    return module


def test_its_examples_hold(mutate):
    assert doctest.testmod(mutate) == (0, 1)


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("x = a < b < 3", ["a <= b < 3", "a < b <= 3", "a < b < 4"]),
        ("x = (a) not in (b)", ["(a) in (b)"]),
        ("x = -a if f(b) else ~c", [
            "-a if (not (f(b))) else ~c", "a if f(b) else ~c", "-a if f(b) else c",
        ]),
        ("x = a and b and True", ["a or b and True", "a and b and False"]),
        ("x = np.minimum(a, ä) | min(b)", [
            "np.minimum(a, ä) & min(b)", "np.maximum(a, ä) | min(b)", "np.minimum(a, ä) | max(b)",
        ]),
        ("x: int | None = f(1, strict=True)", ["f(2, strict=True)"]),
        ("x = '1 < 2', f'{1 < 2}'", []),
    ],
)  # fmt: skip
def test_each_mutant_is_one_change(mutate, code, changed):
    start = code[: code.index("=") + 2]
    sources = [one.source.strip() for one in mutate.find_mutants(code)]
    assert sources == [start + one for one in changed]


def test_statements_are_left_out_and_operators_found_over_several_lines(mutate):
    code = "for k in f():\n    g(k)\n    k += (  # not a -\n        4\n    )\n"
    assert [one.source.strip() for one in mutate.find_mutants(code)] == [
        code.replace("g(k)", "pass").strip(),
        code.replace("+=", "-=").strip(),
        code.replace("4", "5").strip(),
    ]


def test_who_survives_has_a_reason(mutate):
    results = mutate.read_results()
    assert results.keys() <= mutate.MODULES.keys()
    assert all(all(one.survivors.values()) for one in results.values())
