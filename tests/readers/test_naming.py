"""Names of runs: one order of sources for every format."""

import pytest

from polarbear.errors import DataError
from polarbear.readers.naming import RunName, RunNaming, StatedName
from polarbear.readers.source import Source


def name_files(stated: dict[str, StatedName], names: str | None = None):
    source = Source("results", dict.fromkeys(stated, bytes), {})
    naming = RunNaming(source, source.files, names)
    return naming.name_runs([(file, stated[file]) for file in naming.files])


@pytest.mark.parametrize(
    ("file", "says", "names", "expected"),
    [
        # The pattern comes first, then the file for parts that the pattern does not have.
        ("x/a_1.log", StatedName("A", "i", 7), "{instance}_{seed}.log", ("A", "a", 1)),
        ("x/a_1.log", StatedName(None, "i", 7, "S"), "{algorithm}/*.log", ("x", "i", 7)),
        # Then an explicit file name.
        ("x/a__b__3.log", StatedName("A", "i", 7), None, ("a", "b", 3)),
        ("x/a__b.log", StatedName("A", "i", 7), None, ("a", "b", 7)),
        ("x/b__3.log", StatedName("A", "i", 7), None, ("A", "b", 3)),
        ("x/b__3.log", StatedName(solver="S"), None, ("x", "b", 3)),
        # Then the content, then the folder and the file name, and at last the program.
        ("x/a.log", StatedName("A", "i", 7), None, ("A", "i", 7)),
        ("x/a.log", StatedName(instance="i", solver="S"), None, ("x", "i", 0)),
        ("x/a.jsonl.gz", StatedName(solver="S"), None, ("x", "a", 0)),
        ("a.log", StatedName(solver="S"), None, ("S", "a", 0)),
    ],
)
def test_the_order_of_sources(file, says, names, expected):
    assert name_files({file: says}, names) == [RunName(*expected)]


def test_files_that_state_the_same_name_are_named_by_their_file_names():
    same = StatedName("A", "i", 0)
    named = name_files({"p1.log": same, "p2.log": same})
    assert named == [("A", "p1", 0), ("A", "p2", 0)]


def test_runs_of_one_file_with_the_same_name_are_repetitions():
    source = Source("results", {"a__b__5.log": bytes}, {})
    named = RunNaming(source, source.files).name_runs([("a__b__5.log", StatedName())] * 3)
    assert [name.repetition for name in named] == [5, 6, 7]


@pytest.mark.parametrize("file", ["a.jsonl", "a__b__c.log", "a__b__1__c.log", "__b.log", "a__.log"])
def test_names_that_tell_too_little_are_refused(file):
    with pytest.raises(DataError, match=f"{file}: (the name does not tell|repetition)"):
        name_files({file: StatedName()})
