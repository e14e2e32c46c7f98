"""Colours are stable, and distinct with colour blindness, on paper, screens and in grey print."""

import itertools

import numpy as np
import pytest

import polarbear as pb
from polarbear.plots.arguments import get_cast
from polarbear.plots.colours import (
    DARK_COLOURS,
    MAX_COLOURED,
    MUTED_DARK_COLOUR,
    MUTED_PAPER_COLOUR,
    PAPER_COLOURS,
    Cast,
)

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
    for one, other in itertools.combinations(palette, 2):
        assert np.linalg.norm(lab(one, eye) - lab(other, eye)) > 28, (one, other)


def test_colours_stand_out_and_greys_step_back():
    assert min(contrast(colour, "#ffffff") for colour in PAPER_COLOURS) >= 3
    assert min(contrast(colour, "#15181c") for colour in DARK_COLOURS) >= 3
    assert contrast(MUTED_PAPER_COLOUR, "#ffffff") < min(
        contrast(colour, "#ffffff") for colour in PAPER_COLOURS
    )
    assert contrast(MUTED_DARK_COLOUR, "#15181c") < min(
        contrast(c, "#15181c") for c in DARK_COLOURS
    )


@pytest.mark.parametrize("palette", [PAPER_COLOURS, DARK_COLOURS])
def test_styles_stay_distinct_in_grey_print(palette):
    looks = list(Cast.of([f"a{k}" for k in range(MAX_COLOURED)]).styles().values())
    grey = [lab(colour)[0] for colour in palette]
    assert min(abs(a - b) for a, b in itertools.pairwise(grey)) > 20
    for (a, one), (b, other) in itertools.combinations(enumerate(looks), 2):
        differs = one.dash != other.dash or one.marker != other.marker
        assert abs(grey[a] - grey[b]) > 20 or differs, (one, other)


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
    assert after["a3"].colour == PAPER_COLOURS[3]


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
    assert {name: after[name] for name in before} == before
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
