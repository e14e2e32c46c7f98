"""Random runs with everything that happens: ties, gaps, failures, infinities, few and no values."""

import math

from hypothesis import strategies as st

from polarbear import Run, Status

TIMES = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0])
VALUES = st.sampled_from(
    [-math.inf, -1e308, -1.0, -0.0, 0.0, 5e-324, 1.0, 1.0 + 1e-9, 2.0, 1e308, math.inf]
)
DIRECTIONS = st.sampled_from(["minimize", "maximize"])
GRIDS = st.sets(TIMES | st.sampled_from([0.25, 4.0, 9.0]), min_size=1).map(sorted)


@st.composite
def records(draw: st.DrawFn) -> list[Run]:
    """Single runs, at most one of each identity, in any order."""
    identities = draw(
        st.lists(
            st.tuples(
                st.sampled_from("abcde"),
                st.sampled_from(["i2", "i10", "x"]),
                st.sampled_from([0, 1, 7, 2**62]),
            ),
            min_size=1,
            max_size=14,
            unique=True,
        )
    )
    found = []
    for algorithm, instance, repetition in identities:
        rows = draw(st.lists(st.tuples(TIMES, VALUES), max_size=5))
        last = max((time for time, _ in rows), default=0.0)
        until = last + draw(st.sampled_from([0.0, 1.0, 3.0]))
        time, value = [t for t, _ in rows], [v for _, v in rows]
        status = draw(st.sampled_from(Status))
        found.append(Run(algorithm, instance, time, value, until, repetition, status))
    return found
