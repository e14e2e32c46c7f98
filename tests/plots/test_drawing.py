"""Every figure is drawn from every kind of data, without a warning, on the axes given."""

import itertools
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polarbear as pb
from polarbear import plots
from polarbear.data.colours import MUTED_PAPER_COLOUR
from polarbear.plots.labels import space_apart

pyplot = pytest.importorskip("matplotlib.pyplot")
matplotlib = pytest.importorskip("matplotlib")
pytestmark = pytest.mark.filterwarnings("ignore:the times start where no algorithm differs")


@pytest.fixture(scope="module", autouse=True)
def without_a_screen():
    pyplot.switch_backend("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def runs_of(n, times, instances=24):
    truth, _ = pb.simulation.draw_truth(pb.simulation.PAPER_PRIOR, times, n, 2)
    return pb.simulation.simulate_runs(truth, instances, 2, times, persistence=0.5)


CASES = {
    "five": runs_of(5, np.linspace(0, 1, 6)),
    "two": runs_of(2, np.geomspace(1, 1000, 4)),
    "ten": runs_of(10, np.geomspace(1, 1000, 3)),
    "one time": runs_of(3, np.array([60.0])),
}


IN_CI = ("five", "one time")
"""Other numbers of algorithms are drawn by the long tests, and by tests of single figures."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name in IN_CI else pytest.mark.long) for name in CASES],
)
def case(request):
    runs = CASES[request.param]
    return runs, pb.fit(runs), pb.replay(runs, pb.ParetoSet(certainty=0.9))


def texts(ax):
    return " ".join(text.get_text() for text in ax.figure.findobj(match=pyplot.Text))


def overlapping(ax):
    """Return the pairs of names at line ends that overlap."""
    ax.figure.canvas.draw()
    names = [text for text in ax.texts if text.get_text() in ax.names]
    boxes = [pyplot.Text.get_window_extent(name) for name in names]  # without leader lines
    return [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]


@pytest.mark.slow
def test_every_figure_is_drawn(case):
    runs, posterior, race = case
    first, second = posterior.algorithms[:2]
    for ax in (
        plots.ratings(posterior),
        plots.ratings(race),
        plots.values(posterior),
        plots.values(race, pb.preferences.final()),
        plots.evolution(race),
        plots.allocation(race),
        plots.allocation(runs),
        plots.pairs(posterior),
        plots.pairs(posterior, posterior.times[0]),
        plots.crossings(posterior, first, second, rankings=pb.rank(runs)),
    ):
        ax.figure.canvas.draw()
        assert first in texts(ax)


@pytest.mark.long
def test_every_figure_of_larger_data_is_drawn():
    script = Path(__file__).parents[1] / "support" / "every_figure.py"
    subprocess.run([sys.executable, "-W", "error", script], stdout=subprocess.DEVNULL, check=True)


def test_the_classical_views_are_drawn(case):
    pytest.importorskip("moocore")
    runs, posterior, _ = case
    first, second = posterior.algorithms[:2]
    for ax in (
        plots.ecdf(runs, pareto=posterior.pareto()),
        plots.aocc(runs),
        plots.eaf_difference(runs, first, second),
    ):
        ax.figure.canvas.draw()
        assert first in texts(ax)


def test_an_ecdf_ends_where_all_runs_of_an_algorithm_were_cut():
    short = pb.Run("short", "1", [1, 2], [3.0, 2.0], until=2)
    long = pb.Run("long", "1", [1, 4], [3.0, 1.0], until=4)
    runs = pb.Runs.from_records([short, long], direction="minimize")
    ax = plots.ecdf(runs, times=[1, 2, 4])
    ax.figure.canvas.draw()
    assert {"short", "long"} <= {text.get_text() for text in ax.texts}


@pytest.mark.parametrize("name", ["ratings", "values", "evolution", "allocation", "pairs"])
def test_a_race_without_decisions_shows_a_message(name):
    race = pb.Race(["a", "b"], [1, 2], direction="minimize")
    ax = getattr(plots, name)(race)
    ax.figure.canvas.draw()
    assert "yet" in texts(ax)


def test_figures_use_the_axes_given_and_accept_data():
    posterior = pb.fit(CASES["five"])
    _, (left, right) = pyplot.subplots(1, 2)
    assert plots.ratings(plots.ratings_data(posterior), left) is left
    assert plots.values(plots.values_data(posterior), ax=right) is right
    figure = pyplot.figure()
    inside = figure.subfigures(1, 2)[0].subplots()
    assert plots.ratings(posterior, inside) is inside


def test_calibration_curves_share_axes():
    calibration = pb.calibrate(CASES["two"], replicates=4)
    ax = plots.calibration(calibration, label="one")
    assert plots.calibration(calibration.tally, ax, colour="#b68e00", label="two") is ax
    assert len(ax.containers) == 2
    assert texts(ax).count("overconfident") == 1


@pytest.mark.parametrize("size", ["five", "ten"])
def test_names_at_line_ends_do_not_overlap(size):
    posterior = pb.fit(CASES[size])
    data = plots.ratings_data(posterior)
    ax = plots.ratings(data)
    ax.names = set(data.algorithms)
    assert overlapping(ax) == []
    shown = {text.get_text() for text in ax.texts} & ax.names
    assert shown == set(data.cast.coloured)


def test_thirty_names_fit_beside_a_figure_of_two_columns():
    names = [f"algorithm {k}" for k in range(30)]
    times, flat = np.array([1.0, 2.0]), np.full((2, 30), 1 / 30)
    data = plots.RatingCurves(plots.Cast.of(names), tuple(names), times, "time", *[flat] * 3, 0.95)
    ax = plots.ratings(data, columns=2)
    ax.names = set(names)
    assert overlapping(ax) == []
    assert sum(text.get_text() in ax.names for text in ax.texts) == 30


def test_more_names_than_fit_do_not_overlap():
    names = [f"a{k}" for k in range(80)]
    times, flat = np.array([1.0, 2.0]), np.full((2, 80), 1 / 80)
    data = plots.RatingCurves(plots.Cast.of(names), tuple(names), times, "time", *[flat] * 3, 0.95)
    ax = plots.ratings(data)
    ax.names = set(names)
    assert overlapping(ax) == []
    assert "..." in texts(ax)


@given(
    st.lists(st.floats(-0.5, 1.5), max_size=20), st.floats(0.001, 0.3), st.sampled_from([0.0, 0.2])
)
def test_space_apart_keeps_order_and_gap(wanted, gap, low):
    positions = space_apart(wanted, gap, low)
    assert len(positions) == len(wanted)
    if wanted:
        room = min(gap, (1 - low) / max(1, len(wanted) - 1))
        assert np.all(np.diff(np.sort(positions)) >= room - 1e-9)
        assert positions.min() >= low - 1e-9
        assert positions.max() <= 1 + 1e-9
        assert np.all(np.diff(positions[np.argsort(wanted, kind="stable")]) >= 0)


def test_space_apart_keeps_positions_with_room():
    assert space_apart([0.9, 0.1, 0.5], 0.2).tolist() == [0.9, 0.1, 0.5]


def test_names_are_arbitrary_text():
    names = ("$x_1^2$", r"$\frac", "_hidden", "a\nb", "very " * 20)
    position = np.tile(np.arange(5, dtype=np.int16), 4)[None]
    offset, one = np.arange(5) * 5, np.ones(4)
    instances = ("1", "2", "3", "4")
    who = np.tile(np.arange(5, dtype=np.int32), 4)
    rankings = pb.Rankings(names, instances, np.ones(1), position, who, offset, np.arange(4), one)
    posterior = pb.fit(rankings)
    for ax in (
        plots.ratings(posterior),
        plots.values(posterior),
        plots.pairs(posterior),
        plots.crossings(posterior, *names[:2]),
    ):
        ax.figure.canvas.draw()
        assert r"\$x_1^2\$" in texts(ax)


def test_log_and_linear_time():
    posterior = pb.fit(CASES["two"])
    assert plots.ratings(posterior).get_xscale() == "log"
    assert plots.ratings(posterior, time="linear").get_xscale() == "linear"
    with pytest.raises(pb.DataError, match="a log axis cannot show 0: use time='linear'"):
        plots.ratings(pb.fit(CASES["five"]), time="log")
    with pytest.raises(pb.DataError, match="time='cubic': expected"):
        plots.ratings(posterior, time="cubic")


@pytest.mark.slow
@pytest.mark.parametrize("panels", [1, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "span", [(30, 1_000), (100, 150), (40, 90), (1, 99), (20, 180), (7e4, 5e6), (0.02, 0.9)]
)
def test_labels_of_a_log_axis_do_not_overlap(span, panels):
    times, flat = np.geomspace(*span, 5), np.full((5, 2), 0.5)
    data = plots.RatingCurves(plots.Cast.of("ab"), ("a", "b"), times, "time", *[flat] * 3, 0.95)
    size = plots.figsize(2 if panels > 1 else 1)
    figure, sheet = pyplot.subplots(1, panels, figsize=size, layout="constrained", squeeze=False)
    for ax in sheet[0]:
        plots.ratings(data, ax, time="log")
    figure.canvas.draw()
    for ax in sheet[0]:
        labels = [*ax.get_xticklabels(), *ax.get_xticklabels(minor=True)]
        ends = ax.get_window_extent()
        boxes = [label.get_window_extent() for label in labels if label.get_text()]
        boxes = [box for box in boxes if ends.x0 - 1 < (box.x0 + box.x1) / 2 < ends.x1 + 1]
        assert 2 <= len(boxes) <= 7
        pairs = itertools.combinations(boxes, 2)
        assert not any(one.overlaps(other) for one, other in pairs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "suffix",
    ["pdf", "svg", *(pytest.param(one, marks=pytest.mark.long) for one in ("ps", "eps"))],
)
def test_saved_figures_have_text_and_no_type_3_fonts(tmp_path, suffix):
    posterior = pb.fit(pb.simulation.simulate_rankings(np.zeros((3, 2)), 5))
    path = tmp_path / f"figure.{suffix}"
    before = dict(matplotlib.rcParams)
    with warnings.catch_warnings(action="ignore"):  # eps has no transparency
        pb.plots.ratings(posterior).figure.savefig(path)
    assert dict(matplotlib.rcParams) == before
    written = path.read_bytes()
    if suffix == "svg":
        assert b"<text" in written
    else:
        assert b"/FontType 3" not in written
        assert b"/Type3" not in written.replace(b" ", b"")
        assert (b"/FontType 42" if suffix != "pdf" else b"/CIDFontType2") in written


def test_save_figure_embeds_fonts_in_figures_of_others(tmp_path):
    times = pb.grid.log(100, 10_000, 5)
    posterior = pb.fit(pb.simulation.simulate_rankings(np.zeros((5, 2)), 5, times=times))
    before = dict(matplotlib.rcParams)
    figure, ax = pyplot.subplots(figsize=plots.figsize(1))
    plots.ratings(posterior, ax)  # with a log axis, whose ticks are set as mathematics
    for source in (ax, figure):
        written = plots.save_figure(source, tmp_path / "figure.pdf").read_bytes()
        assert b"/Type3" not in written.replace(b" ", b"")
        assert b"/CIDFontType2" in written
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(pb.DataError, match="Axes or a Figure, got 3"):
        plots.save_figure(3, tmp_path / "figure.pdf")


def test_figures_can_be_pickled_and_closed_by_pyplot():
    ax = pb.plots.ratings(pb.fit(pb.simulation.simulate_rankings(np.zeros((3, 2)), 5)))
    again = pickle.loads(pickle.dumps(ax.figure))
    assert type(again) is type(ax.figure)


@pytest.mark.parametrize(
    ("times", "scale"),
    [
        (pb.grid.log(5, 50, 12), "log"),
        (pb.grid.log(20, 400, 12, whole=True), "log"),
        (np.linspace(5, 50, 12), "linear"),
        (np.array([10.0, 20.0, 30.0]), "linear"),
        (np.array([10.0, 20.0, 40.0]), "log"),
        (np.array([10.0, 20.0]), "linear"),
    ],
)
def test_a_log_grid_is_drawn_on_a_log_axis(times, scale):
    rankings = pb.simulation.simulate_rankings(np.zeros((len(times), 2)), 5, times=times)
    assert pb.plots.ratings(pb.fit(rankings)).get_xscale() == scale


def test_sizes_fit_columns():
    assert plots.figsize(1)[0] < 3.5 < 6.5 < plots.figsize(2)[0] <= 7.2
    ax = plots.ratings(pb.fit(CASES["two"]), columns=2)
    assert tuple(ax.figure.get_size_inches()) == plots.figsize(2)
    with pytest.raises(pb.DataError, match="columns=3"):
        plots.figsize(3)


def test_data_needs_no_matplotlib_and_drawing_says_how_to_get_it():
    code = """
import sys
import numpy as np
sys.modules["matplotlib"] = None
import polarbear as pb
posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(3), 9))
pb.plots.ratings_data(posterior), pb.plots.values_data(posterior), pb.plots.pairs_data(posterior)
try:
    pb.plots.ratings(posterior)
except pb.errors.MissingDependency as error:
    print(error)
"""
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "pip install 'polarbear-race[plots]'" in printed.stdout


def test_a_file_name_is_refused_as_axes():
    posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(3), 20))
    with pytest.raises(pb.DataError, match=r"Axes, got 'a\.png'.*ax\.figure\.savefig"):
        pb.plots.ratings(posterior, "a.png")


def test_small_multiples_show_one_algorithm_each():
    truth = np.linspace([2.0] * 3 + [0.0] * 9, [0.0] * 9 + [2.0] * 3, 4)
    posterior = pb.fit(pb.simulation.simulate_rankings(truth, 30))
    data = plots.ratings_data(posterior, certainty=0.9)
    panels = plots.rating_panels(data)
    titles = [ax.get_title(loc="left") for ax in panels]
    assert titles == list(data.cast.pareto)
    for ax, name in zip(panels, titles, strict=True):
        assert len(ax.lines) == 12
        colours = {line.get_color() for line in ax.lines}
        assert colours == {data.cast.highlight(name).styles()[name].colour, MUTED_PAPER_COLOUR}
    shown = [ax for ax in panels if ax.get_xlabel()]
    assert len(shown) == min(4, len(panels))
    assert len(plots.rating_panels(data, ["a1"], columns=1)) == 1
    with pytest.raises(pb.DataError, match="b7"):
        plots.rating_panels(data, ["b7"])
    lines = plots.ratings(data, highlight="a2").lines
    assert sum(line.get_color() != MUTED_PAPER_COLOUR for line in lines) == 1
    one = pb.fit(pb.simulation.simulate_rankings(np.zeros((1, 3)), 5))
    assert len(plots.rating_panels(one)) == 1
