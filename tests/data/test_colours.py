"""Colours are stable, and distinct with colour blindness, on paper, screens and in grey print."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polarbear as pb
from polarbear.data.colours import (
    DARK_COLOURS,
    MAX_COLOURED,
    MUTED_DARK_COLOUR,
    MUTED_PAPER_COLOUR,
    PAPER_COLOURS,
    Cast,
    _hash_name,
)
from polarbear.plots.arguments import get_cast
from polarbear.reporting.content import make_document

# How light is seen without cones for red (protanopia) or green (deuteranopia): Machado, Oliveira
# and Fernandes 2009, in linear RGB.
EYES = {
    "all cones": np.eye(3),
    "no red cones": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green cones": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    rgb = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return float(TO_XYZ[1] @ linear(colour))


def lab(colour, eye="all cones"):
    xyz = TO_XYZ @ np.clip(EYES[eye] @ linear(colour), 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("palette", [PAPER_COLOURS, DARK_COLOURS])
def test_any_two_colours_differ_also_with_colour_blindness(palette, eye):
    least = 27 if eye == "all cones" else 18
    for one, other in itertools.combinations(palette, 2):
        assert np.linalg.norm(lab(one, eye) - lab(other, eye)) > least, (one, other)


def test_colours_stand_out_and_greys_step_back():
    assert min(contrast(colour, "#ffffff") for colour in PAPER_COLOURS) >= 3
    assert min(contrast(colour, "#15181c") for colour in DARK_COLOURS) >= 3
    assert contrast(MUTED_PAPER_COLOUR, "#ffffff") < min(
        contrast(colour, "#ffffff") for colour in PAPER_COLOURS
    )
    assert contrast(MUTED_DARK_COLOUR, "#15181c") < min(
        contrast(c, "#15181c") for c in DARK_COLOURS
    )


NAMES = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=MAX_COLOURED, unique=True)


@given(NAMES)
def test_styles_stay_distinct_in_colour_and_in_grey_print(names):
    for one, other in itertools.combinations(Cast.of(names).styles().values(), 2):
        assert (one.colour, one.dash) != (other.colour, other.dash)
        is_alike = abs(lab(one.colour)[0] - lab(other.colour)[0]) < 20
        assert (one.dash, one.marker) != (other.dash, other.marker) or not is_alike


@given(NAMES, st.text(min_size=1, max_size=6))
def test_an_algorithm_that_is_added_changes_only_colours_that_were_taken(names, added):
    """Who has the colour of its name keeps it, unless the new one has it with more right."""
    before, after = Cast.of(names).styles(), Cast.of([*names, added]).styles()
    for name in names:
        own = PAPER_COLOURS[_hash_name(name) % 12]
        comes_first = _hash_name(added) < _hash_name(name)
        if before[name].colour == own and not (comes_first and after[added].colour == own):
            assert (after[name].colour, after[name].on_dark) == (own, before[name].on_dark)


@given(NAMES)
def test_up_to_twelve_algorithms_have_colours_of_their_own(names):
    """By its hash alone, one of five names shares a colour with another in 62 % of comparisons."""
    assert len({one.colour for one in Cast.of(names).styles().values()}) == len(names)


@pytest.mark.parametrize(
    "names",
    [
        pb.example().algorithms,
        "abcdefg",
        ["a1", "a2", "a3", "a4", "a5"],
        ["CMA", "DE", "NelderMead", "PSO", "random", "OnePlusOne"],
        ["cbc", "copt", "cplex", "gurobi", "highs", "scip"],
    ],
)
def test_common_names_have_different_colours(names):
    assert len({style.colour for style in Cast.of(names).styles().values()}) == len(names)


def test_a_report_a_figure_and_a_race_have_the_same_colours():
    runs = pb.simulation.simulate_runs(np.array([[1.0, 0.5, 0.0]] * 2), 30)
    posterior, race = pb.fit(runs), pb.replay(runs)
    wanted = {name: style.colour for name, style in Cast.of(runs.algorithms).styles().items()}
    document = make_document(posterior)
    assert [look["light"] for look in document["looks"]] == [*wanted.values()]
    assert [line.get_color() for line in pb.plots.ratings(posterior).lines[:3]] == [
        *wanted.values()
    ]
    assert {n: s.colour for n, s in get_cast(race).styles().items()} == wanted


def test_colours_can_be_fixed():
    posterior = pb.fit(pb.simulation.simulate_rankings(np.array([[1.0, 0.5, 0.0]] * 2), 30))
    before = Cast.of(posterior.algorithms).styles()
    try:
        pb.plots.set_colours({"a1": "#123456"})
        pb.plots.set_colours({"a2": ("#654321", "#fedcba")})
        styles = get_cast(posterior).styles()
        assert (styles["a1"].colour, styles["a1"].on_dark) == ("#123456", "#123456")
        assert (styles["a2"].colour, styles["a2"].on_dark) == ("#654321", "#fedcba")
        assert styles["a3"].colour == before["a3"].colour
        assert make_document(posterior)["looks"][0]["light"] == "#123456"
        with pytest.raises(pb.DataError, match="colour 'red' of 'a1': expected a colour such as"):
            pb.plots.set_colours({"a1": "red"})
    finally:
        pb.plots.set_colours(None)
    assert get_cast(posterior).styles() == before


def test_a_style_depends_on_the_names_alone():
    names = ["CSA", "TPA", "XNES", "RS"]
    one = Cast.of(names, ["CSA"]).styles()
    assert Cast.of(names[::-1], ["RS", "TPA"]).styles() == one
    assert len({style.colour for style in one.values()}) == len(names)


def test_of_many_only_the_pareto_set_is_in_colour_and_colours_stay_when_it_shrinks():
    names = [f"a{k}" for k in range(30)]
    before = Cast.of(names, ["a3", "a20", "a7"]).styles()
    after = Cast.of(names, ["a3", "a20"]).styles()
    assert [name for name, style in after.items() if not style.muted] == ["a3", "a20"]
    assert (before["a3"], before["a20"]) == (after["a3"], after["a20"])


def test_thirty_algorithms_have_thirty_styles():
    names = [f"a{k}" for k in range(30)]
    styles = Cast.of(names, names).styles().values()
    assert len({(style.colour, style.dash) for style in styles}) == 30


def test_an_algorithm_that_joins_a_race_changes_no_colour():
    race = pb.Race(["b", "c", "e"], [1, 2], direction="minimize")
    before = get_cast(race).styles()
    race.add("a")
    race.add("d")
    race.remove("b")
    after = get_cast(race).styles()
    assert {name: after[name].colour for name in before} == {
        name: style.colour for name, style in before.items()
    }
    assert get_cast(race).names == tuple("abcde")
    assert len({style.colour for style in after.values()}) == 5
    race.add("b")
    assert get_cast(race).styles() == after


def test_highlighted_algorithms_alone_are_in_colour():
    cast = Cast.of([f"a{k}" for k in range(20)], pareto=["a1", "a2"])
    chosen = cast.highlight(["a7", "a2"])
    assert {name for name, style in chosen.styles().items() if not style.muted} == {"a2", "a7"}
    assert chosen.styles()["a2"] == cast.styles()["a2"]
    with pytest.raises(pb.DataError, match="a99"):
        cast.highlight("a99")
