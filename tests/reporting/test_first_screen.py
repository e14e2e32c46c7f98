"""What a reader sees first, in a real browser: at two sizes, light and dark, for many subjects."""

import numpy as np
import pytest

import browsers
import polarbear as pb
from racers import drive, race_of
from reported import SUBJECTS, LivePage, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(browsers.why_not()), reason=browsers.why_not()),
]

MAX_REPORT_BYTES = 600_000
SIZES = ((1440, 900), (390, 844))


@pytest.fixture(scope="module")
def browser():
    with browsers.opened() as opened_browser:
        yield opened_browser


def race_under_way():
    question = pb.ParetoSet(certainty=0.99)
    return drive(race_of(question=question, budget=pb.Budget(runs=60), fit=pb.fit))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module", params=[*SUBJECTS, "live"])
def address(request, folder):
    """The page of each subject, written once."""
    if request.param != "live":
        path = folder / f"{request.param}.html"
        if not path.exists():
            pb.report(SUBJECTS[request.param](), path, title="My problems")
        assert path.stat().st_size < MAX_REPORT_BYTES
        yield path.as_uri()
        return
    race = race_under_way()
    page = LivePage(folder, race, race.status)
    sure = race.posterior.prob_best().max(axis=1).tolist()
    rounds = [
        {"round": k, "runs": 12 * k, "leader": [0] * len(sure), "probability": sure}
        for k in (1, 2, 3)
    ]
    page.rounds = rounds
    running = {"ended": None, "per_minute": 96.0, "to_go": "4 min to 12 min to go"}
    page.show(race, race.status, failed=3, who_failed="late (3)", **running)
    page.write_page()
    with served(folder) as url:
        yield f"{url}/index.html"


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: str(size[0]))
def sized(request, browser, address):
    """The page at a size; what it says as an error fails the test."""
    width, height = request.param
    with browsers.Visit(browser, address, width=width, height=height) as visit:
        if address.startswith("http"):
            visit.page.wait_for_selector("#strip b")
        yield visit.page, width, height
        assert visit.errors == []
        assert address.startswith("http") or visit.requests == [address]


@pytest.fixture(params=["light", "dark"])
def screen(request, sized):
    """The page at a size, light or dark."""
    sized[0].emulate_media(color_scheme=request.param)
    return *sized, request.param


OUTSIDE = """(width) => [...document.querySelectorAll("main *")].filter((one) => {
  const { left, right, width: wide } = one.getBoundingClientRect();
  return wide && (left < -1 || right > width + 1) && !one.closest(".scroll, .hidden");
}).map((one) => one.outerHTML.slice(0, 120))"""

CLIPPED = """() => [...document.querySelectorAll("main *")].filter((one) =>
  one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "visible"
  && !one.closest(".scroll, .hidden, .algorithm")).map((one) => `${one.id} ${one.className}`)"""

# Text in pictures, which axe does not look at; names in cells have a ground of their own.
PICTURE_TEXT = """() => [...document.querySelectorAll("main svg text:not(.cell-name)")].map((one) =>
  [getComputedStyle(one).fill, getComputedStyle(document.body).backgroundColor, one.textContent])"""


def contrast(first, second):
    """Return the contrast of two colours, such as "rgb(0, 0, 0)" (WCAG 2)."""

    def light(colour):
        levels = np.array([float(part) for part in colour[4:].strip("()").split(",")[:3]]) / 255
        linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted(map(light, (first, second)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_black_and_white():
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
    assert contrast("rgb(118, 118, 118)", "rgb(255, 255, 255)") == pytest.approx(4.54, abs=0.01)


def test_the_answer_and_the_ribbon_are_on_the_first_screen(screen):
    page, width, height, _ = screen
    for part in ("#facts", "#choice", "#lead", "#ribbon", *(["#plot"] if width == 1440 else [])):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= height, part
    size = page.evaluate("getComputedStyle(document.querySelector('#choice')).fontSize")
    assert size == ("40px" if width == 1440 else "34px")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OUTSIDE, width) == []
    assert page.evaluate(CLIPPED) == []
    for ink, paper, text in page.evaluate(PICTURE_TEXT):
        assert contrast(ink, paper) >= 4.5, text


def test_axe_has_no_serious_finding(screen):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, width, _, scheme = screen
    if (width, scheme) not in ((1440, "light"), (390, "dark")):
        return  # the same page in the same colours
    # With the values of fifty algorithms at fifty times, axe would take long.
    few = "" if page.locator("#table tbody tr").count() < 5 else ":not(#figures)"
    page.evaluate(f"document.querySelectorAll('details{few}').forEach((one) => one.open = true)")
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
    found = axe.run(page, options={"resultTypes": ["violations"], **rules}).response["violations"]
    serious = [
        f"{one['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]
    assert serious == []


CONTROLS = """() => [...document.querySelectorAll("button, input, select, summary, [tabindex]")]
  .filter((one) => one.tabIndex >= 0 && one.checkVisibility())
  .map((one, k) => { one.dataset.control = k; return k; })"""


def test_every_control_is_reached_by_tab(sized):
    page = sized[0]
    page.click("#kinds [data-value=range]")
    page.evaluate("document.activeElement.blur()")
    wanted = set(page.evaluate(CONTROLS))
    reached = set()
    for _ in range(len(wanted) + 5):
        page.keyboard.press("Tab")
        held = page.evaluate("Number(document.activeElement.dataset.control ?? -1)")
        reached.add(held)
    assert wanted <= reached
    # Of the matrix of pairs one cell is among these; the arrow keys reach the others.
    assert page.evaluate("document.querySelectorAll('#matrix .pair[tabindex=\"0\"]').length") <= 1
