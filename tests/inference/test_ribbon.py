"""The ribbon: who leads at each time, where that changes, and its pictures."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polarbear as pb
from polarbear.data.colours import Cast
from polarbear.inference.ribbon import Ribbon
from polarbear.inference.ribbon_pictures import (
    blend,
    choose_ink,
    get_ribbon_styles,
    render_ribbon_svg,
    render_ribbon_text,
)

TIMES = np.geomspace(100, 10_000, 5)
BEST = np.array(
    [
        [0.98, 0.01, 0.01, 0.0],
        [0.6, 0.3, 0.05, 0.05],
        [0.0, 0.99, 0.01, 0.0],
        [0.0, 0.4, 0.6, 0.0],
        [0.0, 0.2, 0.8, 0.0],
    ]
)


@pytest.fixture
def ribbon():
    return Ribbon.of(["early", "middle", "late", "never"], TIMES, "evaluations", BEST)


def test_cells_reach_to_the_midpoints_of_the_grid(ribbon):
    assert ribbon.is_log
    middles = np.sqrt(TIMES[1:] * TIMES[:-1])
    assert_allclose(ribbon.edges, [100, *middles, 10_000])
    linear = Ribbon.of(ribbon.algorithms, TIMES, "evaluations", BEST, is_log=False)
    assert_allclose(linear.edges[1:-1], (TIMES[1:] + TIMES[:-1]) / 2)


def test_it_has_the_three_most_likely_and_rounded_times_of_changes(ribbon):
    assert ribbon.top.tolist()[1][:2] == [0, 1]
    assert_allclose(ribbon.probability, -np.sort(-BEST, axis=1)[:, :3])
    assert ribbon.switches == [560, 1800]  # of 562.3 and 1778.3
    assert [one.is_certain for one in ribbon.leads] == [True, True, False]
    assert ribbon.describe_when(0) == "up to 560"
    assert ribbon.describe_when(1) == "560 \N{EN DASH} 1,800"
    assert ribbon.describe_when(2) == "perhaps from 1,800"
    assert ribbon.describe_when(3) == ""


def test_of_those_as_likely_the_one_that_leads_most_is_named():
    times = np.arange(3.0)
    near = Ribbon.of(["a", "b"], times, "time", np.array([[0.1, 0.9], [0.51, 0.49], [0.2, 0.8]]))
    assert [one.algorithm for one in near.leads] == [1]
    apart = Ribbon.of(["a", "b"], times, "time", np.array([[0.1, 0.9], [0.52, 0.48], [0.2, 0.8]]))
    assert [one.algorithm for one in apart.leads] == [1, 0, 1]


def test_the_ribbon_of_a_posterior_follows_prob_best():
    truth = np.stack([np.linspace(3, -3, 6), np.linspace(-3, 3, 6)], axis=1)
    posterior = pb.fit(pb.simulation.simulate_rankings(truth, 60, times=np.geomspace(1, 1e4, 6)))
    ribbon = pb.plots.ribbon_data(posterior)
    assert ribbon.top[:, 0].tolist() == posterior.prob_best().argmax(axis=1).tolist()
    assert_allclose(ribbon.probability[:, 0], posterior.prob_best().max(axis=1))
    assert len(ribbon.switches) == 1
    nothing = pb.plots.ribbon_data(pb.Race(["a", "b"], [1.0, 2.0], direction="minimize"))
    assert nothing.leads == ()
    assert "nothing is known yet" in render_ribbon_text(nothing)


def test_letters_tell_without_colour_what_colours_tell(ribbon):
    _, ticks, row, key = render_ribbon_text(ribbon, 64).split("\n")
    assert "\x1b" not in row
    assert row == "E" * 8 + "e" * 16 + "M" * 16 + "l" * 24
    assert ticks.index("560") == row.index("M")
    assert ticks.endswith("10,000 evaluations")
    assert key == "E early  M middle  L late  small letters: less than 95 % certain"
    coloured = render_ribbon_text(ribbon, 64, is_coloured=True)
    blocks = coloured.split("\n")[2]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", blocks)
    assert len(plain) == 64
    assert plain.split() == ["early", "middle", "late"]
    assert coloured.split("\n")[3] == "█" * 8 + "░" * 16 + "█" * 16 + "░" * 24


def test_names_in_a_terminal_are_escaped():
    ribbon = Ribbon.of(["a\x1b[2J"], np.array([1.0]), "time", np.ones((1, 1)))
    assert "\x1b" not in render_ribbon_text(ribbon)


def test_a_name_in_a_cell_can_be_read():
    def luminance(colour):
        levels = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    for name in map(str, range(40)):
        style = pb.plots.Cast.of([name]).styles()[name]
        for ground in (style.colour, style.on_dark, blend(style.colour, 0.4)):
            low, high = sorted(map(luminance, (ground, choose_ink(ground))))
            assert (high + 0.05) / (low + 0.05) >= 4.5


def test_the_notebook_shows_the_ribbon_above_the_table():
    truth = np.array([[3.0, 0.0, -3.0], [0.0, 3.0, -3.0]])
    posterior = pb.fit(pb.simulation.simulate_rankings(truth, 60, times=np.array([1.0, 1000.0])))
    card = posterior.verdict()._repr_html_()
    assert card.index("<svg") < card.index("<table")
    assert 'role="img" aria-label="What to run if you stop here: a1 up to' in card
    for word in ("worth running", "drop", "most likely the best", "from 32"):
        assert word in card


def test_hatches_mark_what_is_not_certain(ribbon):
    svg = render_ribbon_svg(ribbon)
    assert svg.count('fill="url(#polarbear-hatch)"') == 3
    assert "560" in svg
    certain = Ribbon.of(["a"], TIMES, "time", np.ones((5, 1)))
    assert 'fill="url(#polarbear-hatch)"' not in render_ribbon_svg(certain)


def test_close_rivals_that_alternate_are_one_stretch_in_words():
    best = np.array([[0.97, 0.03], [0.4, 0.6], [0.55, 0.45], [0.02, 0.98]])
    ribbon = Ribbon.of(["a", "b"], np.array([1.0, 10.0, 100.0, 1000.0]), "time", best)
    assert (
        ribbon.describe()
        == "a up to 3.2 (97 %), then b or a up to 320 (55 to 60 %, not certain), then b (98 %)"
    )
    best = np.array([[0.8, 0.2, 0.0], [0.1, 0.7, 0.2], [0.0, 0.3, 0.7]])
    ribbon = Ribbon.of(["a", "b", "c"], np.array([1.0, 10.0, 100.0]), "time", best)
    assert ribbon.describe().count("not certain") == 3  # each has its own stretch


def test_a_leader_has_the_colour_that_it_has_among_all_algorithms():
    """The ribbon of a race was coloured among its leaders alone, and its table among all."""
    names = [f"solver {k}" for k in range(12)]
    styles = Cast.of(names).styles()
    best = np.tile(np.eye(12)[:2], (2, 1))
    whole = Ribbon.of(names, np.arange(1.0, 5.0), "time", best)
    part = replace(Ribbon.of(names[:2], whole.times, "time", best[:, :2]), others=tuple(names))
    for ribbon in (whole, part):
        shown = get_ribbon_styles(ribbon)
        assert {name: shown[name].colour for name in names[:2]} == {
            name: styles[name].colour for name in names[:2]
        }
