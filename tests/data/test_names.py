"""The natural order of names."""

from hypothesis import given
from hypothesis import strategies as st

from polarbear.data import names
from polarbear.data.names import natural_sort_key, sort_names

PARTS = st.sampled_from(["", "a", "b", "!", "é", "\x00", "\x01", "0", "00", "1", "07", "10", "9"])
NAMES = st.lists(PARTS, max_size=5).map("".join)


@given(st.sets(NAMES | st.text(max_size=6)))
def test_names_are_sorted_as_by_their_keys(some):
    assert sort_names(some) == sorted(some, key=natural_sort_key)


def test_names_that_differ_in_their_last_number_are_converted_once(monkeypatch):
    """A table of 300,000 instances was read for 4 s, most of it for one key after another."""
    converted = []
    encode = names._encode_number
    monkeypatch.setattr(names, "_encode_number", lambda m: converted.append(m[0]) or encode(m))
    listed = [f"bbob-d10-i{k}" for k in range(3000)]
    assert sort_names(reversed(listed)) == listed
    assert converted == ["10"]
