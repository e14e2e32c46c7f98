"""The page in a real browser: its content, its controls, and its safety."""

import contextlib
import json
import re
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import browsers
import polarbear as pb
from browsers import expect
from polarbear.reporting.page import make_document, render_document

MABBOB = Path(__file__).parents[2] / "examples" / "mabbob_d5.csv"

pytestmark = pytest.mark.skipif(bool(browsers.why_not()), reason=browsers.why_not())


@pytest.fixture(scope="module")
def browser():
    with browsers.opened() as opened_browser:
        yield opened_browser


@pytest.fixture(scope="module")
def posterior():
    return pb.fit(pb.read(MABBOB, direction="minimize", clock="evaluations"))


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


def ask(page, kind, risk, *, level=None, **ends):
    """Set the budget and the criterion, as a reader does."""
    page.check(f"[name=kind][value={kind}]")
    page.check(f"[name=risk][value={risk}]")
    for place, value in {**ends, **({"level": level} if level else {})}.items():
        page.fill(f"#{place}-input", str(value))
        page.press(f"#{place}-input", "Tab")


def answer(page):
    """Return the chosen algorithm, and the values of the table by name."""
    rows = page.evaluate(
        """() => [...document.querySelectorAll("#choices tbody tr")].map((row) =>
        [...row.children].filter((_, k) => k !== 1).map((cell) => cell.textContent))"""
    )
    chosen = page.text_content("#choice strong")
    assert chosen == rows[0][0]
    return chosen, {row[0]: row[1:] for row in rows}


@pytest.mark.slow
def test_the_page_begins_with_the_verdict(page, posterior):
    sentences = page.locator("main section").first.locator("li bdi").all_text_contents()
    last = [page.text_content("#close"), page.text_content("#summary")]
    said = "\n".join(filter(None, [*sentences, *last]))
    assert "P\u00a0>\u00a00.999" in said  # a line does not break there
    assert said.replace("\u00a0", " ") == str(posterior.verdict(0.95))
    expect(page.locator("#plot .curve")).to_have_count(7)
    expect(page.locator("#pair-table tbody tr")).to_have_count(21)
    expect(page.locator("#trusted")).to_contain_text("All numerical checks of the posterior passed")
    expect(page.locator("#origin")).to_contain_text("SHA-256")


PREFERENCES = [
    ("uniform", {}, None),
    ("uniform", {"low": 100, "high": 200}, pb.preferences.between(100, 200)),
    ("uniform", {"low": 3000, "high": 10000}, pb.preferences.between(3000, 10000)),
    ("loguniform", {"low": 150, "high": 5000}, pb.preferences.between(150, 5000, scale="log")),
    ("fixed", {"likely": 130}, pb.preferences.at(130)),
    ("fixed", {"likely": 7000}, pb.preferences.at(7000)),
    (
        "triangular",
        {"low": 100, "high": 400, "likely": 150},
        pb.preferences.distribution(scipy.stats.triang(1 / 6, 100, 300)),
    ),
]
RISKS = [("expected", None), ("best", None), ("careful", 0.05)]
SETTINGS = [*product(PREFERENCES, RISKS)]


@pytest.mark.slow
def test_the_page_selects_as_select_does(page, posterior):
    assert len(SETTINGS) > 20
    for (kind, ends, preference), (risk, level) in SETTINGS:
        ask(page, kind, risk, level=level, **ends)
        chosen, figures = answer(page)
        selection = pb.select(posterior, preference, risk=level or risk)
        exact = {choice.algorithms[0]: choice for choice in selection.choices}
        # Two algorithms of equal value may be in either order because of rounding.
        assert selection.choice.score - exact[chosen].score < 0.003, (kind, risk)
        assert (
            selection.choice.score - selection.choices[1].score < 0.003
            or chosen == selection.algorithms[0]
        )
        for name, (expected, *quantile, best, regret) in figures.items():
            assert float(expected) == pytest.approx(exact[name].expected, abs=6e-4)
            assert float(best.strip("<> ")) == pytest.approx(exact[name].best, abs=0.02)
            assert float(regret) == pytest.approx(exact[name].regret, abs=1e-3)
            if quantile and quantile[0] != "\N{EN DASH}":
                assert float(quantile[0]) == pytest.approx(exact[name].score, abs=0.004)


def test_algorithms_are_toggled(page):
    chip = page.locator("#names .chip", has_text="RS")
    chip.focus()
    page.keyboard.press("Space")
    expect(page.locator("#plot .curve")).to_have_count(6)
    expect(page.locator("#names .chip", has_text="RS")).to_be_focused()
    expect(page.locator("#names .chip", has_text="RS")).to_have_attribute("aria-pressed", "false")
    page.click("#names >> text=Pareto set only")
    expect(page.locator("#plot .curve")).to_have_count(6)
    page.click("#names >> text=All")
    expect(page.locator("#plot .curve")).to_have_count(7)


def test_axes_and_views_change(page):
    before = page.get_attribute("#plot .curve", "d")
    page.click("text=Linear time")
    expect(page.locator("#plot .curve").first).not_to_have_attribute("d", before)
    page.click("text=Probability of being the best")
    expect(page.locator("#plot .band")).to_have_count(0)
    said = re.compile("Probability of the highest rating")
    expect(page.locator("#plot svg").first).to_have_attribute("aria-label", said)


@pytest.mark.slow
def test_the_budget_is_dragged(page):
    expect(page.locator("#choice strong")).to_have_text("CSA")
    page.locator("#track").scroll_into_view_if_needed()
    handle = page.locator("#high-handle").bounding_box()
    rail = page.locator("#track .rail").bounding_box()
    middle = handle["y"] + handle["height"] / 2
    page.mouse.move(handle["x"] + handle["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(rail["x"] + rail["width"] * 0.12, middle, steps=8)
    page.mouse.up()
    expect(page.locator("#choice strong")).to_have_text("MXNES")
    high = float(page.input_value("#high-input"))
    assert high == pytest.approx(100 * 100**0.12, rel=0.02)
    assert float(page.get_attribute("#high-handle", "aria-valuenow")) == high
    expect(page.locator("#code")).to_contain_text(f"between(100, {high:g})")
    span = page.locator("#track .span").bounding_box()
    page.mouse.move(span["x"] + span["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(rail["x"] + rail["width"] + 50, middle, steps=8)
    page.mouse.up()
    expect(page.locator("#high-input")).to_have_value("10000")
    assert float(page.input_value("#low-input")) > 5000
    assert page.text_content("#choice strong") in ("XNES", "MSR")


@pytest.mark.slow
def test_the_budget_is_moved_by_keys(page):
    page.focus("#high-handle")
    for _ in range(9):
        page.keyboard.press("PageDown")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#high-handle")).to_be_focused()
    assert float(page.input_value("#high-input")) == pytest.approx(100 * 100**0.13, rel=0.03)
    expect(page.locator("#choice strong")).to_have_text("MXNES")
    page.keyboard.press("Home")
    expect(page.locator("#high-input")).to_have_value("100")
    page.keyboard.press("End")
    expect(page.locator("#high-handle")).to_have_attribute("aria-valuetext", "10,000 evaluations")
    page.focus("#plot")
    page.keyboard.press("End")
    expect(page.locator("#tip")).to_contain_text("10,000 evaluations")


@pytest.mark.slow
def test_everything_is_reached_by_tab(page):
    seen = []
    for _ in range(70):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"plot", "low-handle", "high-handle", "chip", "option", "sort", "low-input"} <= set(seen)


@pytest.mark.slow
def test_values_are_shown_at_the_pointer(page):
    page.locator("#plot").scroll_into_view_if_needed()
    box = page.locator("#plot svg").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.3)
    expect(page.locator("#tip")).to_be_visible()
    expect(page.locator("#tip tr")).to_have_count(7)
    page.mouse.move(5, 5)
    expect(page.locator("#tip")).to_be_hidden()
    page.click("text=Values as a table")
    expect(page.locator("#figures tbody tr")).to_have_count(30)


def test_pairs_are_sorted_and_filtered(page):
    page.click(".sort[data-value=everywhere]")
    shares = page.locator("#pair-table tbody tr td:nth-child(4)").all_text_contents()
    assert shares[0] == "> 0.999"
    assert shares[-1] == "< 0.001"
    column = page.locator("#pair-table th", has=page.locator("[data-value=everywhere]"))
    assert column.get_attribute("aria-sort") == "descending"
    page.select_option("#pairs-filter select", label="RS")
    expect(page.locator("#pair-table tbody tr")).to_have_count(6)


def contrast(page, selector):
    """Return the contrast of an element's text with its background (WCAG 2)."""
    colours = page.evaluate(
        """(selector) => {
        const element = document.querySelector(selector);
        const ground = (one) => {
            const said = getComputedStyle(one).backgroundColor;
            const clear = said === "rgba(0, 0, 0, 0)" && one.parentElement;
            return clear ? ground(one.parentElement) : said;
        };
        return [getComputedStyle(element).color, ground(element)];
        }""",
        selector,
    )

    def light(colour):
        levels = np.array([float(part) for part in colour[4:].strip("()").split(",")[:3]]) / 255
        linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted(light(colour) for colour in colours)
    return (high + 0.05) / (low + 0.05)


def test_text_has_contrast_on_light_and_dark_pages(page):
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        for part in (
            "#summary", ".lead", "#about", ".chip", ".quiet", ".option[aria-pressed=true]",
            ".option[aria-pressed=false]", ".hint", "#choices thead th", ".sort", "code",
            ".status.member", ".status.undecided", ".status.dominated", "dt", "summary",
        ):  # fmt: skip
            assert contrast(page, part) >= 4.5, (scheme, part)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["usual", "one time", "empty race", "race", "two"])
def test_nothing_is_wider_than_the_screen(browser, report, tmp_path, case):
    if case == "one time":
        truth = np.array([[1.0, 0.0, -1.0]])
        rankings = pb.simulation.simulate_rankings(truth, 30, times=np.array([60.0]))
        report = pb.report(pb.fit(rankings), tmp_path / "one.html")
    elif case == "empty race":
        race = pb.Race(["a", "b"], [1.0, 2.0], direction="minimize")
        report = pb.report(race, tmp_path / "race.html")
    elif case == "race":
        runs = pb.simulation.simulate_runs(np.array([[2.0, 1.5, -2.0]] * 3), 60)
        report = pb.report(pb.replay(runs), tmp_path / "race.html")
    elif case == "two":
        truth = np.linspace(0, 2, 4)[:, None] * [0.0, 1.0]
        report = pb.report(
            pb.fit(pb.simulation.simulate_rankings(truth, 30)), tmp_path / "two.html"
        )
    with browsers.Visit(browser, report.as_uri()) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 1440
        visit.page.set_viewport_size({"width": 390, "height": 800})
        # wait_for_function would evaluate text in the page, which the page's policy forbids.
        end = time.monotonic() + 30
        while visit.page.evaluate("document.documentElement.scrollWidth") > 390:
            assert time.monotonic() < end, "the page is wider than the screen"
            visit.page.wait_for_timeout(50)
        assert visit.errors == []
        if case == "race":
            expect(visit.page.locator("#race-pictures figure")).to_have_count(4)
            assert visit.page.locator("#race-pictures path.out").count() >= 1
        if case == "one time":
            expect(visit.page.locator("#track")).to_be_hidden()
            expect(visit.page.locator("#choice strong")).to_have_text("a1")
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
            assert len(beside) > 6
            assert all(map(all, beside)), beside
        assert visit.errors == []


def test_a_race_without_decided_pairs_has_a_sentence_in_place_of_a_figure(browser, undecided):
    with browsers.Visit(browser, undecided.as_uri()) as visit:
        expect(visit.page.locator("#settled")).to_contain_text("No pair is decided")


def test_it_prints_without_controls(page):
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("#controls")).to_be_hidden()
    expect(page.locator("#choice")).to_be_visible()
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
        names = page.evaluate("[...document.querySelectorAll('#names .chip')].map((c) => c.title)")
        assert sorted(names) == sorted(HOSTILE)
        expect(page.locator("h1")).to_have_text(HOSTILE[0])
        for button in page.locator("#names .chip, .sort").all():
            button.click()
        page.select_option("#pairs-filter select", value=f"a:{HOSTILE[1]}")
        expect(page.locator("#pair-table tbody tr")).to_have_count(7)
        expect(page.locator("img, iframe, object, a")).to_have_count(0)
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert visit.errors == []
        assert visit.requests == [path.as_uri()]


def _renamed(posterior, names):
    fields = ("times", "draws", "weight", "mixture", "hyper", "diagnostics", "prior", "method")
    return {"algorithms": tuple(names), **{name: getattr(posterior, name) for name in fields}}


def test_thirty_algorithms_show_the_set_in_colour(browser, tmp_path):
    rng = np.random.default_rng(2)
    truth = rng.normal(0, 2, 30) + np.linspace(-1, 1, 5)[:, None] * rng.normal(0, 1, 30)
    posterior = pb.fit(pb.simulation.simulate_rankings(truth, 40), draws=600)
    path = pb.report(posterior, tmp_path / "thirty.html")
    assert path.stat().st_size < 700_000
    with browsers.Visit(browser, path.as_uri()) as visit:
        page = visit.page
        stay = len(posterior.pareto())
        expect(page.locator("#plot .curve")).to_have_count(30)
        expect(page.locator("#plot .curve:not(.other)")).to_have_count(stay)
        greys = page.locator("#plot .curve.other").evaluate_all(
            "(all) => new Set(all.map((one) => getComputedStyle(one).stroke)).size"
        )
        assert greys == 1
        assert page.locator("#plot .label").count() <= 24
        expect(page.locator("#sentences li")).to_have_count(12)
        page.click("#all-sentences")
        expect(page.locator("#sentences li")).to_have_count(30)
        assert visit.errors == []


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.slow
def test_a_live_page_follows_and_keeps_what_was_set(browser, posterior, tmp_path):
    waiting = make_document(pb.Race(posterior.algorithms, [1.0, 2.0], direction="minimize"))
    (tmp_path / "index.html").write_text(render_document(waiting, live=True), "utf-8")
    (tmp_path / "data.json").write_text(json.dumps(waiting), "utf-8")
    with served(tmp_path) as url, browsers.Visit(browser, f"{url}/index.html") as visit:
        page = visit.page
        page.wait_for_selector("#live:has-text('Live: as of')")
        expect(page.locator("#summary")).to_have_text("Nothing is decided yet.")
        expect(page.locator("#ratings")).to_be_hidden()
        (tmp_path / "data.json").write_text(json.dumps(make_document(posterior)), "utf-8")
        page.wait_for_selector("#plot .curve")
        ask(page, "uniform", "best", high=200)
        expect(page.locator("#choice strong")).to_have_text("MXNES")
        page.locator("#names .chip", has_text="RS").click()
        page.focus("#low-handle")
        (tmp_path / "data.json").write_text(
            json.dumps(make_document(posterior, certainty=0.9)), "utf-8"
        )
        page.wait_for_selector("#pairs-lead:has-text('90 %')")
        expect(page.locator("#high-input")).to_have_value("200")
        expect(page.locator("[name=risk][value=best]")).to_be_checked()
        expect(page.locator("#plot .curve")).to_have_count(6)
        expect(page.locator("#low-handle")).to_be_focused()
        assert visit.errors == []
        assert {request.split("?")[0] for request in visit.requests} == {
            f"{url}/index.html",
            f"{url}/data.json",
        }


def test_many_algorithms_are_found_by_their_names(browser, tmp_path):
    truth = np.tile(np.linspace(2, -2, 60), (3, 1))
    posterior = pb.fit(pb.simulation.simulate_rankings(truth, 30))
    path = pb.report(posterior, tmp_path / "many.html")
    with browsers.Visit(browser, path.as_uri()) as visit:
        page = visit.page
        few = page.locator("#names .chip").count()
        assert few == len(posterior.pareto()) < 60
        page.locator("#verdict .find").fill("A57")
        expect(page.locator("#sentences li")).to_have_count(1)
        expect(page.locator("#names .chip", has_text="a57")).to_be_visible()
        expect(page.locator("#ratings .find")).to_have_value("A57")
        page.locator("#ratings .find").fill("")
        expect(page.locator("#names .chip")).to_have_count(few)
        assert visit.errors == []


@pytest.mark.slow
def test_targets_at_gaps_are_shown_and_typed_as_gaps(browser, tmp_path):
    runs = pb.example()
    targets = pb.targets.from_optima(0.0, runs, gaps=[10, 1, 0.1, 1e-8])
    path = pb.report(pb.fit(runs, targets=targets), tmp_path / "report.html")
    with browsers.Visit(browser, path.as_uri()) as visit:
        page = visit.page
        ticks = page.locator("#ratings svg text.tick.middle").all_text_contents()
        assert {"10", "1e-8"} <= set(ticks)
        ask(page, "uniform", "expected", low=1, high=1e-8)
        assert page.input_value("#high-input") == "1e-8"
        assert page.input_value("#low-input") == "1"
        assert "from 1 to 1e-8 precision targets" in page.text_content("main")
        assert visit.errors == []
