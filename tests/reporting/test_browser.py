"""The page in a real browser: its content, its controls, and its safety."""

import re
import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.stats

import browsers
import polarbear as pb
from browsers import expect
from reported import LivePage, fit_classes, fit_failing, replay_race, served, simulate
from waiting import PATIENCE

pytestmark = pytest.mark.skipif(bool(browsers.why_not()), reason=browsers.why_not())


@pytest.fixture(scope="module")
def browser():
    with browsers.opened() as opened_browser:
        yield opened_browser


@pytest.fixture(scope="module")
def posterior():
    return simulate(7)


@pytest.fixture(scope="module")
def report(posterior, tmp_path_factory):
    return pb.report(posterior, tmp_path_factory.mktemp("report") / "report.html", certainty=0.95)


@pytest.fixture
def visit(browser, report):
    """The report, opened from disk; errors and requests of the page fail the test."""
    with browsers.Visit(browser, report.as_uri()) as opened_page:
        yield opened_page
        assert opened_page.errors == []
        assert opened_page.requests == [report.as_uri()]


@pytest.fixture
def page(visit):
    return visit.page


def ask(page, kind, risk="expected", scale=None, **ends):
    """Set the budget and the criterion, as a reader does."""
    page.click(f"#kinds [data-value={kind}]")
    page.select_option("#risk", risk)
    if scale:
        page.select_option("#scale", scale)
    for place, value in ends.items():
        page.fill(f"#{place}-input", str(value))
        page.press(f"#{place}-input", "Tab")


VALUE = re.compile(
    r"([\d.e-]+)(?:, 95 % from [\d.e-]+ to [\d.e-]+; P\(best choice\) ([<>]?) ?(\d+) %, "
    r"regret ([\d.e-]+))?"
)


def answer(page):
    """Return the code of the choice, and the value, P(best) and regret of each code."""
    rows = page.evaluate(
        """() => [...document.querySelectorAll("#table tbody tr")].map((row) =>
        [Number(row.dataset.code), row.querySelector(".interval")?.getAttribute("aria-label")])"""
    )
    figures = {code: VALUE.match(says).groups() for code, says in rows if says}
    return int(page.get_attribute("#choice", "data-code")), figures


def test_the_page_begins_with_what_to_run(page, posterior):
    chosen = pb.select(posterior, pb.preferences.between(scale="log"))
    expect(page.locator("#choice")).to_have_text(f"Run {chosen.algorithms[0]}.")
    expect(page.locator("#lead")).to_contain_text("as likely on a log scale")
    switch = pb.plots.ribbon_data(posterior).switches[0]
    expect(page.locator("#lead")).to_contain_text(f"Below {switch:,g} run a1")
    expect(page.locator("#facts")).to_contain_text("7 algorithms · 60 instances · 100 to 10,000")
    expect(page.locator("#plot .curve")).to_have_count(7)
    expect(page.locator("#table tbody tr")).to_have_count(7)
    expect(page.locator("#matrix .pair")).to_have_count(42)
    expect(page.locator("#trusted")).to_contain_text("All numerical checks of the posterior passed")
    expect(page.locator("#origin")).to_contain_text("SHA-256")


def test_a_close_choice_names_the_contenders(browser, tmp_path):
    rankings = pb.simulation.simulate_rankings(np.zeros((4, 3)), 20)
    path = pb.report(pb.fit(rankings), tmp_path / "close.html")
    with browsers.Visit(browser, path.as_uri()) as visit:
        said = visit.page.text_content("#choice")
        assert re.fullmatch(r"a\d(, a\d)? or a\d\.", said), said
        expect(visit.page.locator("#lead")).to_contain_text("It is close")


@pytest.mark.slow
def test_classes_that_differ_have_a_chip_and_a_ribbon_each(browser, tmp_path):
    path = pb.report(fit_classes(), tmp_path / "classes.html")
    with browsers.Visit(browser, path.as_uri()) as visit:
        page = visit.page
        expect(page.locator("#choice")).to_have_text("It depends on the class.")
        expect(page.locator("#class-chips .chip")).to_have_count(3)
        expect(page.locator("#class-ribbons figure")).to_have_count(3)
        said = page.locator("#class-ribbons svg").first.get_attribute("aria-label")
        assert said.startswith("What to run if you stop here: a1 up to ")
        assert visit.errors == []


@pytest.mark.slow
def test_failures_of_the_choice_stand_beside_the_answer(browser, tmp_path):
    path = pb.report(fit_failing(), tmp_path / "failures.html")
    with browsers.Visit(browser, path.as_uri()) as visit:
        page = visit.page
        expect(page.locator("#facts .bad")).to_have_text("20 of 150 runs crashed")
        ask(page, "exactly", at=1)
        expect(page.locator("#choice")).to_have_text("Run quick.")
        expect(page.locator("#cautions")).to_contain_text("quick failed in 20 of 50 runs")
        expect(page.locator("#table tr.chosen .failing")).to_contain_text("30 / 50")
        assert visit.errors == []


PREFERENCES = [
    ("any", {}, "log", pb.preferences.between(scale="log")),
    ("any", {}, "linear", pb.preferences.between()),
    ("upto", {"high": 200}, "linear", pb.preferences.between(100, 200)),
    ("range", {"low": 3000, "high": 10000}, "linear", pb.preferences.between(3000, 10000)),
    ("range", {"low": 150, "high": 5000}, "log", pb.preferences.between(150, 5000, scale="log")),
    ("exactly", {"at": 130}, "log", pb.preferences.at(130)),
    ("exactly", {"at": 7000}, "log", pb.preferences.at(7000)),
    (
        "deadline",
        {"high": 400},
        "log",
        pb.preferences.distribution(scipy.stats.triang(1, 100, 300)),
    ),
]
RISKS = [("expected", "expected"), ("best", "best"), ("careful", 0.05)]


@pytest.mark.slow
def test_the_page_selects_as_select_does(page, posterior):
    for (kind, ends, scale, preference), (risk, level) in product(PREFERENCES, RISKS):
        ask(page, kind, risk, scale, **ends)
        chosen, figures = answer(page)
        selection = pb.select(posterior, preference, risk=level)
        exact = {posterior.algorithms.index(one.algorithms[0]): one for one in selection.choices}
        # Two algorithms of equal value may be in either order because of rounding.
        assert selection.choice.score - exact[chosen].score < 0.003, (kind, risk)
        is_close = selection.choice.score - selection.choices[1].score < 0.003
        assert is_close or posterior.algorithms[chosen] == selection.algorithms[0]
        for code, (expected, sign, best, regret) in figures.items():
            assert float(expected) == pytest.approx(exact[code].expected, abs=6e-4)
            if best:
                assert float(regret) == pytest.approx(exact[code].regret, abs=1e-3)
                assert sign or int(best) / 100 == pytest.approx(exact[code].best, abs=0.025)


def test_the_ribbon_shows_the_top_three_and_sets_the_budget(page, posterior):
    page.focus("#ribbon")
    page.keyboard.press("Home")
    expect(page.locator("#ribbon-tip tr")).to_have_count(3)
    expect(page.locator("#ribbon-tip")).to_contain_text("100")
    page.keyboard.press("Enter")
    expect(page.locator("#kinds [data-value=exactly]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#at-input")).to_have_value("100")
    box = page.locator("#ribbon > svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.85, box["y"] + 20)
    expect(page.locator("#ribbon-tip")).to_be_visible()
    page.mouse.click(box["x"] + box["width"] * 0.85, box["y"] + 20)
    at = float(page.input_value("#at-input"))
    assert np.isclose(at, posterior.times).any()
    expect(page.locator("#choice")).to_have_text("Run a2.")


def test_hatches_and_words_tell_what_is_not_certain(page, posterior):
    uncertain = int((pb.plots.ribbon_data(posterior).probability[:, 0] < 0.95).sum())
    assert uncertain
    expect(page.locator("#ribbon .hatched")).to_have_count(uncertain)
    said = page.get_attribute("#ribbon > svg", "aria-label")
    assert said.endswith(pb.plots.ribbon_data(posterior).describe())


def test_a_name_in_the_table_is_drawn_in_colour(page):
    grey = page.locator("#plot .curve.other").count()
    assert grey >= 3
    name = page.locator("#table .algorithm[title=a7]")
    name.focus()
    page.keyboard.press("Space")
    expect(page.locator("#plot .curve.other")).to_have_count(grey - 1)
    expect(page.locator("#table .algorithm[title=a7]")).to_be_focused()


def test_axes_and_views_change(page):
    before = page.get_attribute("#plot .curve", "d")
    page.select_option("#scale", "linear")
    expect(page.locator("#plot .curve").first).not_to_have_attribute("d", before)
    expect(page.locator("#lead")).to_contain_text("as likely on a linear scale")
    page.click("#views [data-value=best]")
    expect(page.locator("#plot .band")).to_have_count(0)
    expect(page.locator("#plot .area").first).to_be_visible()
    page.click("#views [data-value=wins]")
    expect(page.locator("#plot-title")).to_contain_text("Chance to beat the choice")


@pytest.mark.slow
def test_the_budget_is_dragged(page):
    page.click("#kinds [data-value=range]")
    handle = page.locator("#high-handle").bounding_box()
    rail = page.locator("#track .rail").bounding_box()
    middle = handle["y"] + handle["height"] / 2
    page.mouse.move(handle["x"] + handle["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(rail["x"] + rail["width"] * 0.12, middle, steps=8)
    page.mouse.up()
    expect(page.locator("#choice b")).to_have_text("a1")
    high = float(page.input_value("#high-input"))
    assert high == pytest.approx(100 * 100**0.12, rel=0.02)
    assert float(page.get_attribute("#high-handle", "aria-valuenow")) == high
    expect(page.locator("#code")).to_contain_text(f'between(100, {high:g}, scale="log")')
    span = page.locator("#track .span").bounding_box()
    page.mouse.move(span["x"] + span["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(rail["x"] + rail["width"] + 50, middle, steps=8)
    page.mouse.up()
    expect(page.locator("#high-input")).to_have_value("10000")
    assert float(page.input_value("#low-input")) > 5000
    expect(page.locator("#choice b")).to_have_text("a2")


@pytest.mark.slow
def test_the_budget_is_moved_by_keys(page):
    page.click("#kinds [data-value=deadline]")
    page.focus("#high-handle")
    for _ in range(9):
        page.keyboard.press("PageDown")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#high-handle")).to_be_focused()
    assert float(page.input_value("#high-input")) == pytest.approx(100 * 100**0.13, rel=0.03)
    expect(page.locator("#choice b")).to_have_text("a1")
    page.keyboard.press("End")
    expect(page.locator("#high-handle")).to_have_attribute("aria-valuetext", "10,000")
    page.focus("#plot")
    page.keyboard.press("End")
    expect(page.locator("#tip")).to_contain_text("10,000")


@pytest.mark.slow
def test_values_are_shown_at_the_pointer(page):
    box = page.locator("#plot svg").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.3)
    expect(page.locator("#tip")).to_be_visible()
    expect(page.locator("#tip tr")).to_have_count(7)
    page.mouse.move(5, 5)
    expect(page.locator("#tip")).to_be_hidden()
    page.click("text=Values as a table")
    expect(page.locator("#figures tbody tr")).to_have_count(30)


@pytest.mark.slow
def test_losses_are_curves_at_every_width(browser, posterior, tmp_path):
    runs = pb.simulation.simulate_runs(np.zeros((3, 3)), 10)
    losses = pb.selection.losses(runs, runs.until.max() * np.array([0.3, 0.6, 1.0]))
    path = pb.report(posterior, tmp_path / "losses.html", losses=losses)
    with browsers.Visit(browser, path.as_uri()) as visit:
        for width in (1440, 390):
            visit.page.set_viewport_size({"width": width, "height": 844})
            expect(visit.page.locator("#losses-plot .curve.worst")).to_have_count(3)
            expect(visit.page.locator("#losses-plot")).to_be_visible()
        assert visit.errors == []


def test_arrow_keys_move_in_the_matrix(page):
    page.locator("#matrix .pair[tabindex='0']").focus()
    first = page.text_content("#pair-says")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#pair-says")).not_to_have_text(first)
    assert "Ahead at all times: " in page.text_content("#pair-says")


@pytest.mark.slow
@pytest.mark.parametrize("case", ["usual", "one time", "empty race", "race"])
def test_nothing_is_wider_than_the_screen(browser, report, tmp_path, case):
    if case == "one time":
        truth = np.array([[1.0, 0.0, -1.0]])
        rankings = pb.simulation.simulate_rankings(truth, 30, times=np.array([60.0]))
        report = pb.report(pb.fit(rankings), tmp_path / "one.html")
    elif case == "empty race":
        race = pb.Race(["a", "b"], [1.0, 2.0], direction="minimize")
        report = pb.report(race, tmp_path / "race.html")
    elif case == "race":
        report = pb.report(replay_race(), tmp_path / "race.html")
    with browsers.Visit(browser, report.as_uri()) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 1440
        visit.page.set_viewport_size({"width": 390, "height": 800})
        # wait_for_function would evaluate text in the page, which the page's policy forbids.
        end = time.monotonic() + PATIENCE
        while visit.page.evaluate("document.documentElement.scrollWidth") > 390:
            assert time.monotonic() < end, "the page is wider than the screen"
            visit.page.wait_for_timeout(50)
        assert visit.errors == []
        if case == "race":
            expect(visit.page.locator("#race-pictures figure")).to_have_count(4)
            assert visit.page.locator("#race-pictures path.out").count() >= 1
        if case == "one time":
            expect(visit.page.locator("#track")).to_be_hidden()
            expect(visit.page.locator("#choice")).to_have_text("Run a1.")
            expect(visit.page.locator("#code")).to_have_text("pb.select(posterior)")


LONG = (
    "a_name_without_any_space_that_is_long_v2.3.1",
    "a name of many words that is long, too",
    "c",
)

BESIDE = """() => [...document.querySelectorAll(".labelled")].map((label) => {
  const [swatch, name] = [...label.children].map((part) => part.getBoundingClientRect());
  return [name.left >= swatch.right, name.top < swatch.bottom, swatch.top < name.top + 24];
})"""


@pytest.fixture(scope="module")
def undecided(tmp_path_factory):
    """The report of a race of long names in which no pair is decided."""
    runs = pb.simulation.simulate_runs(np.zeros((3, 3)), 16)
    frame = {**runs.to_frame().to_dict("list")}
    frame["algorithm"] = [LONG[int(name[1:]) - 1] for name in frame["algorithm"]]
    same = pb.Runs.from_frame(frame, direction=runs.direction, until="until", clock="evaluations")
    path = tmp_path_factory.mktemp("undecided") / "report.html"
    return pb.report(pb.replay(same, pb.ParetoSet(certainty=0.99)), path)


@pytest.mark.slow
def test_names_stand_beside_their_swatch(browser, undecided):
    with browsers.Visit(browser, undecided.as_uri()) as visit:
        for width in (1440, 390):
            visit.page.set_viewport_size({"width": width, "height": 800})
            beside = visit.page.evaluate(BESIDE)
            assert len(beside) >= 6
            assert all(map(all, beside)), beside
        assert visit.errors == []


def test_a_race_without_decided_pairs_has_a_sentence_in_place_of_a_figure(browser, undecided):
    with browsers.Visit(browser, undecided.as_uri()) as visit:
        expect(visit.page.locator("#settled")).to_contain_text("No pair is decided")


def test_it_prints_without_controls(page):
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("#controls")).to_be_hidden()
    expect(page.locator("#choice")).to_be_visible()
    expect(page.locator("#ribbon")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")


HOSTILE = [
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "\"' onmouseover=window.pwned=1 \n\t&lt;b&gt;",
    "🦄 \u202egnp.exe",
    "{{script}}",
    "__proto__",
    "javascript:window.pwned=1",
    "a" * 300,
]


@pytest.mark.slow
def test_names_are_data_and_never_markup(browser, tmp_path):
    rng = np.random.default_rng(1)
    plain = pb.fit(pb.simulation.simulate_rankings(rng.normal(0, 1, (4, 8)), 30), draws=400)
    posterior = pb.Posterior(**_renamed(plain, HOSTILE))
    path = pb.report(posterior, tmp_path / "hostile.html", title=HOSTILE[0])
    with browsers.Visit(browser, path.as_uri(), width=390) as visit:
        page = visit.page
        names = page.evaluate("[...document.querySelectorAll('.algorithm')].map((b) => b.title)")
        assert sorted(names) == sorted(HOSTILE)
        expect(page.locator("#title")).to_have_text(HOSTILE[0])
        for k in range(len(HOSTILE)):
            page.click(f".algorithm[data-value=a{k}]")
        page.locator("#matrix .pair").first.focus()
        expect(page.locator("img, iframe, object, a")).to_have_count(0)
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert visit.errors == []
        assert visit.requests == [path.as_uri()]


def _renamed(posterior, names):
    fields = ("times", "draws", "weight", "mixture", "hyper", "diagnostics", "prior", "method")
    return {"algorithms": tuple(names), **{name: getattr(posterior, name) for name in fields}}


def test_of_thirty_algorithms_those_that_may_be_best_are_in_colour(browser, tmp_path):
    posterior = simulate(30, 5)
    path = pb.report(posterior, tmp_path / "thirty.html")
    may_be_best = int((posterior.prob_best().max(axis=0) >= 0.05).sum())
    with browsers.Visit(browser, path.as_uri()) as visit:
        page = visit.page
        expect(page.locator("#plot .curve")).to_have_count(30)
        expect(page.locator("#plot .curve:not(.other)")).to_have_count(may_be_best)
        greys = page.locator("#plot .curve.other").evaluate_all(
            "(all) => new Set(all.map((one) => getComputedStyle(one).stroke)).size"
        )
        assert greys == 1
        expect(page.locator("#table tbody tr")).to_have_count(8)
        page.click("#all-rows")
        expect(page.locator("#table tbody tr")).to_have_count(30)
        page.fill("#find", "A2")
        expect(page.locator("#table tbody tr")).to_have_count(11)  # a2, a20 to a29
        assert visit.errors == []


@pytest.mark.slow
def test_a_live_page_follows_and_keeps_what_was_set(browser, posterior, tmp_path):
    waiting = pb.Race(posterior.algorithms, [1.0, 2.0], direction="minimize")
    files = LivePage(tmp_path, waiting, waiting.status)
    with served(tmp_path) as url, browsers.Visit(browser, f"{url}/index.html") as visit:
        page = visit.page
        expect(page.locator("#state")).to_have_text("Live")
        expect(page.locator("#choice")).to_have_text("Nothing is decided yet.")
        expect(page.locator("#ratings")).to_be_hidden()
        # Before the first round, the runs that are in fill a grid.
        files.show(waiting, waiting.status, ["##", "#o", "x.", *["oo"] * 4], runs=4, failed=1)
        expect(page.locator("#grid figcaption")).to_contain_text("First round: 4 of 13 runs are in")
        expect(page.locator("#grid .cell")).to_have_count(3)
        expect(page.locator("#grid .crossed")).to_have_count(1)
        decided = replace(
            waiting.status, counts=waiting.status.counts._replace(rounds=1, open_pairs=9)
        )
        files.show(posterior, decided, to_go="4 min to 12 min to go", per_minute=96.3)
        page.wait_for_selector("#plot .curve")
        expect(page.locator("#grid")).to_be_hidden()
        expect(page.locator("#strip")).to_contain_text("12 of 21 pairs settled")
        expect(page.locator("#strip")).to_contain_text("96 a minute")
        expect(page.locator("#strip")).to_contain_text("4 min to 12 min to go")
        expect(page.locator("#past")).to_be_hidden()
        ask(page, "range", "best", high=200)
        expect(page.locator("#choice b")).to_have_text("a1")
        page.focus("#low-handle")
        later = replace(decided, counts=decided.counts._replace(rounds=2, open_pairs=0))
        sure = np.full(30, 0.6).tolist()
        files.rounds = [
            {"round": 1, "runs": 12, "leader": [6] * 30, "probability": sure},
            {"round": 2, "runs": 24, "leader": [1] * 30, "probability": sure},
        ]
        files.show(posterior, later, certainty=0.9)
        page.wait_for_selector("#pairs-lead:has-text('90 %')")
        expect(page.locator("#high-input")).to_have_value("200")
        expect(page.locator("#risk")).to_have_value("best")
        expect(page.locator("#low-handle")).to_be_focused()
        # The ribbon as it was after the first round, and back.
        page.focus("#round")
        page.keyboard.press("Home")
        expect(page.locator("#past")).to_contain_text("after round 1 of 2, 12 runs")
        assert page.locator("#ribbon .cell-name").all_text_contents() == ["a7"]
        page.keyboard.press("End")
        assert "a1" in page.locator("#ribbon .cell-name").all_text_contents()
        files.show(posterior, replace(later, ended="resolved"))
        expect(page.locator("#state")).to_have_text("Ended: resolved")
        (tmp_path / "status.json").unlink()
        expect(page.locator("#state")).to_contain_text("No answer from the server")
        expect(page.locator("#strip")).to_be_hidden()
        assert all("404" in error for error in visit.errors)
        assert {request.split("?")[0] for request in visit.requests} == {
            f"{url}/index.html",
            f"{url}/data.json",
            f"{url}/status.json",
        }


@pytest.mark.slow
def test_targets_at_gaps_are_shown_and_typed_as_gaps(browser, tmp_path):
    rng = np.random.default_rng(0)
    columns = {
        "algorithm": np.tile(np.repeat(["a", "b"], 6), 20),
        "instance": np.repeat(np.arange(20), 12),
        "time": np.tile(np.arange(1, 7), 40),
        "value": np.tile(10.0 ** -np.arange(-1, 11, 2), 40) * rng.uniform(0.5, 2, 240),
    }
    runs = pb.Runs.from_frame(columns, direction="minimize", ended="cut")
    targets = pb.targets.from_optima(0.0, runs, gaps=[10, 1, 0.1, 1e-8])
    path = pb.report(pb.fit(pb.rank(runs, targets=targets)), tmp_path / "report.html")
    with browsers.Visit(browser, path.as_uri()) as visit:
        page = visit.page
        ticks = page.locator("#ribbon svg text.tick").all_text_contents()
        assert any(tick.startswith("10") for tick in ticks)
        assert any(tick.startswith("1e-8") for tick in ticks)
        ask(page, "range", "expected", low=1, high=1e-8)
        assert page.input_value("#high-input") == "1e-8"
        assert page.input_value("#low-input") == "1"
        assert "from 1 to 1e-8 precision targets" in page.text_content("main")
        assert visit.errors == []
