"""What is public is documented, with examples that run; what documents link to is there.

The examples themselves are run with the other tests (see pyproject.toml), tutorials by
docs/run_tutorials.py. Who has to have an example:

- every public function and class, also of the public modules, in its docstring; not those that
  only hold what a function gives, without a method of their own (records of figures);
- a public method of a class of the package itself: in its docstring, in that of its class or of
  another method, or in the documents. Properties need none, nor do methods of what is in modules
  (of priors, for instance, that engines call).
"""

import inspect
import re
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest

import polarbear
from polarbear.coordinator.gate import Gate
from polarbear.coordinator.run_race import SolverRace

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
REFERENCE = sorted(ROOT.glob("docs/reference/*.md"))
NAMED = re.compile(r"`(\w+)(?:\.\w+|\([^`]*)?` in\s+`(polarbear(?:\.\w+)+)`")
MODULE = re.compile(r"`(polarbear(?:\.\w+)+)`")
LINK = re.compile(r"\]\((?!https?:|mailto:|#|/)([^)#\s]+)")
EXAMPLE = re.compile(r"^ *(?:>>>|\.\.\.) (.*)$", re.MULTILINE)


def public():
    """Functions and classes that are public, by name."""
    for name in polarbear.__all__:
        thing = getattr(polarbear, name)
        if not inspect.ismodule(thing):
            yield name, thing
            continue
        here = [n for n, t in vars(thing).items() if getattr(t, "__module__", "") == thing.__name__]
        for inside in getattr(thing, "__all__", here):
            if not inside.startswith("_"):
                yield f"{name}.{inside}", getattr(thing, inside)


def only_holds(name, thing):
    """Whether it is a record in a public module."""
    own = [n for n, t in vars(thing).items() if inspect.isroutine(t) and not n.startswith("_")]
    return "." in name and isinstance(thing, type) and not own and name.startswith("plots.")


PUBLIC = {
    name: thing
    for name, thing in public()
    if isinstance(thing, type) or inspect.isroutine(thing)  # not types such as Literal["a", "b"]
    if not only_holds(name, thing)
}
CLASSES = {
    name: thing for name, thing in PUBLIC.items() if isinstance(thing, type) and "." not in name
}
CALLED = {name: thing for name, thing in PUBLIC.items() if not isinstance(thing, type)}


def examples(text):
    return "\n".join(EXAMPLE.findall(text or ""))


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_has_an_example(name):
    assert examples(inspect.getdoc(PUBLIC[name])), f"{name}: its docstring has no example"


@pytest.mark.parametrize("name", [name for name in CALLED if "." not in name])
def test_functions_say_what_they_return_and_raise(name):
    """Functions of modules: docs/conf.py says what they return by their annotation."""
    text, result = inspect.getdoc(CALLED[name]), inspect.signature(CALLED[name]).return_annotation
    assert "\nRaises\n------\n" in text, f"{name}: its docstring has no section Raises"
    assert result in ("None", None) or "\nReturns\n-------\n" in text, f"{name}: nor Returns"


def methods(cls):
    """Methods of ours, by name."""
    for name, method in inspect.getmembers(cls, inspect.isroutine):
        if not name.startswith("_") and str(getattr(method, "__module__", "")).startswith(
            "polarbear"
        ):
            yield name, method


@pytest.mark.parametrize("name", CLASSES)
def test_methods_are_used_in_examples(name):
    found = dict(methods(CLASSES[name]))
    texts = [CLASSES[name].__doc__, *(inspect.getdoc(method) for method in found.values())]
    texts += [path.read_text("utf-8") for path in DOCUMENTS]
    shown = "\n".join(examples(text) for text in texts)
    for method in found:
        assert re.search(rf"\.{method}\(", shown), f"{name}.{method} is in no example"


def test_the_reference_has_all_public_names():
    pages = "\n".join(path.read_text("utf-8") for path in REFERENCE)
    for name in set(polarbear.__all__) - {"__version__"}:
        assert re.search(rf":: polarbear\.{name}\b", pages), (
            f"{name} is public and in no page of docs/reference: add a line such as "
            f"'.. autofunction:: polarbear.{name}' (or autoclass, automodule) to one"
        )


@pytest.mark.parametrize("path", REFERENCE, ids=lambda path: path.stem)
def test_names_of_the_reference_exist(path):
    for name in re.findall(r":: (polarbear[\w.]+)", path.read_text("utf-8")):
        assert resolve_name(name) is not None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    for target in LINK.findall(path.read_text("utf-8")):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_named_functions_are_where_the_text_says(path):
    """`name` in `polarbear.module` is there, and so is every dotted name in the text."""
    text = path.read_text("utf-8")
    for name, module in NAMED.findall(text):
        assert hasattr(resolve(module), name), f"{path.name}: no {name} in {module}"
    for dotted in MODULE.findall(text):
        resolve(dotted)


def resolve(dotted):
    """Return the module, or the attribute of a module, of this dotted name."""
    try:
        return import_module(dotted)
    except ImportError:
        module, name = dotted.rsplit(".", 1)
        return getattr(import_module(module), name)


def test_the_page_of_races_has_the_figures_of_the_committed_table():
    """It told of 50 races where the table had 14."""
    table = (ROOT / "studies" / "racing" / "table.md").read_text("utf-8")
    examples = ("crossing-L0", "winner-L0", "near-L0")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    found = {row[0]: row for row in rows if row[0] in examples and row[1] == "default"}
    page = " ".join((ROOT / "docs" / "explanation" / "racing.md").read_text("utf-8").split())
    [races] = {row[2] for row in found.values()}
    took = "{}, {} and {} instances".format(*(found[name][4].split()[0] for name in examples))
    assert f"took {took} (medians of {races} races" in page
    assert {row[6].split(",")[0] for row in found.values()} == {"0"}  # missed


def test_the_package_does_not_claim_to_race_on_every_system():
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert "OS Independent" not in project
    assert "Operating System :: POSIX" in project


def signatures():
    """Signatures of public functions, methods and classes, as help() prints them."""
    for name, thing in PUBLIC.items():
        if isinstance(thing, type) and issubclass(thing, Exception):
            continue
        yield name, str(inspect.signature(thing))
        for method, routine in methods(thing) if isinstance(thing, type) else ():
            yield f"{name}.{method}", str(inspect.signature(routine))


def test_help_prints_readable_signatures():
    """Arrays are "ArrayLike", not the union of thirteen types of numpy that it stands for."""
    for name, text in signatures():
        is_record = isinstance(PUBLIC.get(name), type)
        readable = "numpy._typing" not in text and len(text) <= (700 if is_record else 450)
        assert readable, (
            f"help() prints {name}{text}: begin its module with "
            "'from __future__ import annotations', which keeps annotations as they are written"
        )


RESULT = re.compile(r"(?<![\w.])result\.([a-z]\w*)\b(?!\.py)")


def test_what_texts_call_on_a_result_exists():
    known = {*dir(SolverRace), *dir(Gate), *Gate.__annotations__}
    texts = [(path, path.read_text("utf-8")) for path in DOCUMENTS]
    for path in (ROOT / "src").rglob("*.py"):
        strings = re.findall(r'"""(.*?)"""', path.read_text("utf-8"), flags=re.DOTALL)
        texts.append((path, "\n".join(strings)))
    wrong = {(path.name, name) for path, text in texts for name in RESULT.findall(text)}
    assert {(file, name) for file, name in wrong if name not in known | {"py"}} == set()
