"""Records of studies survive being cut short."""

from tools.markdown import quartiles, table
from tools.records import Records


def test_a_line_that_was_cut_short_is_measured_again(tmp_path):
    path = tmp_path / "results" / "a.jsonl"
    kept = Records(path, ("method", "race"))
    kept.add({"method": "x", "race": 0, "spent": 0.5})
    kept.add({"method": "x", "race": 1, "spent": 0.25})
    path.write_text(path.read_text()[:-5])
    again = Records(path, ("method", "race"))
    assert ("x", 0) in again
    assert ("x", 1) not in again
    again.add({"method": "x", "race": 1, "spent": 0.25})
    assert Records(path, ("method", "race")).rows == kept.rows


def test_tables_are_markdown():
    assert table(["a", "b"], [[1, 2]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert quartiles([1, 2, 3, 4, 5]) == "3 (2 to 4)"
