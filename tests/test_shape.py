"""The shape of the code: small records built by keyword, few parameters, one meaning per name."""

import ast
import inspect
from collections import Counter
from pathlib import Path

import polarbear as pb

SOURCE = Path(pb.__file__).parent
MAX_FIELDS, MAX_PARAMETERS, MAX_POSITIONAL = 12, 12, 4
ROOMS_OF_THE_RACE = ("racing", "coordinator", "design")

MODULES = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


def classes(tree):
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def fields_of(node):
    """The fields of a record by its annotations; None of a class that is no record."""
    marks = [ast.unparse(mark) for mark in (*node.decorator_list, *node.bases)]
    if not any("dataclass" in mark or mark == "NamedTuple" for mark in marks):
        return None
    annotated = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    return [part for part in annotated if "ClassVar" not in ast.unparse(part.annotation)]


def test_a_record_of_the_race_has_few_fields():
    large = {
        node.name: len(fields)
        for path, tree in MODULES.items()
        if path.relative_to(SOURCE).parts[0] in ROOMS_OF_THE_RACE
        for node in classes(tree)
        if (fields := fields_of(node)) and len(fields) > MAX_FIELDS
    }
    assert large == {}


def test_a_public_function_has_few_parameters():
    public = {name: getattr(pb, name) for name in pb.__all__}
    functions = {name: one for name, one in public.items() if inspect.isfunction(one)}
    for name, kind in public.items():
        if inspect.isclass(kind) and not hasattr(kind, "__dataclass_fields__"):
            own = inspect.getmembers(kind, lambda one: inspect.isroutine(one))
            functions |= {
                f"{name}.{method}": one
                for method, one in own
                if (not method.startswith("_") or method == "__init__")
                and str(getattr(one, "__module__", "")).startswith("polarbear")
            }
    many = {}
    for name, function in functions.items():
        names = inspect.signature(function).parameters.keys() - {"self", "cls"}
        if len(names) > MAX_PARAMETERS:
            many[name] = len(names)
    assert many == {}


def test_records_are_built_by_keyword():
    records = {node.name for tree in MODULES.values() for node in classes(tree) if fields_of(node)}
    found = []
    for path, tree in MODULES.items():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            if (name in records or name == "cls") and len(call.args) > MAX_POSITIONAL:
                found.append(f"{path.relative_to(SOURCE)}:{call.lineno} {name}")
    assert found == []


def test_a_class_has_a_name_of_its_own():
    names = Counter(node.name for tree in MODULES.values() for node in classes(tree))
    assert [name for name, number in names.items() if number > 1] == []
