"""The public surface: every name and signature that users see, so that each change of it is seen.

PYTHONPATH=src python tests/test_surface.py writes surface.txt again, after a change that is meant.
"""

import inspect
import re
from pathlib import Path
from types import ModuleType

import polarbear as pb

FILE = Path(__file__).with_name("surface.txt")


def signature_of(routine):
    """Parameters and defaults without annotations, which Python's versions print differently."""
    parameters = [
        one.replace(annotation=one.empty) for one in inspect.signature(routine).parameters.values()
    ]
    return re.sub(" at 0x[0-9a-f]+", "", str(inspect.Signature(parameters)))


def lines_of(name, thing):
    """A line for a function or a value; for a class also one for each of its public members."""
    if inspect.isfunction(thing) or inspect.ismethod(thing):
        yield f"{name}{signature_of(thing)}"
    elif isinstance(thing, type):
        is_error = issubclass(thing, BaseException)
        yield f"class {name}" + ("" if is_error else signature_of(thing))
        for member in sorted(set() if is_error else set(dir(thing)) - set(dir(tuple))):
            if not member.startswith("_"):
                own = inspect.getattr_static(thing, member)
                routine = getattr(thing, member) if isinstance(own, classmethod) else own
                is_routine = inspect.isfunction(routine) or inspect.ismethod(routine)
                signature = signature_of(routine) if is_routine else ""
                yield f"    {member}{signature}"
    else:
        yield name


def surface():
    """All lines of the public surface, sorted by name."""
    for name in sorted(pb.__all__):
        thing = getattr(pb, name)
        if not isinstance(thing, ModuleType):
            yield from lines_of(name, thing)
            continue
        for own in sorted(getattr(thing, "__all__", [k for k in vars(thing) if k.islower()])):
            inner = getattr(thing, own)
            if not own.startswith("_") and not isinstance(inner, ModuleType):
                is_own = getattr(inner, "__module__", thing.__name__).startswith("polarbear")
                yield from lines_of(f"{name}.{own}", inner) if is_own else ()


def test_every_change_of_the_public_surface_is_meant():
    assert "\n".join(surface()).splitlines() == FILE.read_text().splitlines(), (
        "the public surface differs: if that is meant, write it again with "
        "PYTHONPATH=src python tests/test_surface.py, and say it in CHANGELOG.md"
    )


if __name__ == "__main__":
    FILE.write_text("\n".join(surface()) + "\n")
