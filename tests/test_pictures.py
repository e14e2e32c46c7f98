"""Pictures and numbers in documents are what the software and the committed tables say."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
AGAIN = "run python docs/take_pictures.py, and look at the pictures"


@pytest.fixture
def picture_data(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return pytest.importorskip("picture_data")


@pytest.fixture
def alike(monkeypatch):
    """Whether two texts are the same, with numbers within a tenth or two hundredths."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return pytest.importorskip("run_tutorials").alike


def compare(kept, now, place, alike):
    """Fail where the two differ: in numbers by more than a tenth and 0.02, in words at all."""
    assert type(kept) is type(now), f"{place}: {kept} was drawn, and is {now}; {AGAIN}"
    if isinstance(kept, dict):
        assert kept.keys() == now.keys(), f"{place}; {AGAIN}"
        for name, value in kept.items():
            compare(value, now[name], f"{place}, {name}", alike)
    elif isinstance(kept, list):
        assert len(kept) == len(now), f"{place}; {AGAIN}"
        for k, pair in enumerate(zip(kept, now, strict=True)):
            compare(*pair, f"{place}, {k}", alike)
    elif isinstance(kept, str) and not kept.startswith("#"):  # which is a colour
        assert alike(kept, now), f"{place}: this was drawn:\n{kept}\nand is:\n{now}\n{AGAIN}"
    elif isinstance(kept, float):
        assert now == pytest.approx(kept, abs=0.02, rel=0.1), f"{place}; {AGAIN}"
    else:
        assert kept == now, f"{place}; {AGAIN}"


@pytest.mark.slow
def test_pictures_show_what_the_software_says(picture_data, alike):
    kept = json.loads(picture_data.KEPT.read_text("utf-8"))
    assert kept.keys() == picture_data.PICTURES.keys()
    for name, describe in picture_data.PICTURES.items():
        compare(kept[name], picture_data.to_plain(describe()), name, alike)


def test_a_picture_that_shows_another_rating_is_found(alike):
    compare({"XNES": [0.331, "#004b45"]}, {"XNES": [0.34, "#004b45"]}, "ratings", alike)
    for other in ({"XNES": [0.255, "#004b45"]}, {"XNES": [0.331, "#000000"]}, {"MSR": [0.3]}):
        with pytest.raises(AssertionError, match=r"python docs/take_pictures\.py"):
            compare({"XNES": [0.331, "#004b45"]}, other, "ratings", alike)


def test_every_picture_of_a_page_is_taken_by_one_command(picture_data):
    pages = [ROOT / "README.md", ROOT / "paper" / "paper.md", *(ROOT / "docs").rglob("*.md")]
    shown = set()
    for page in pages:
        for target in re.findall(
            r"(?:\]\(|:file: |og:image\": )([^)\s]+\.(?:png|svg))", page.read_text("utf-8")
        ):
            path = (page.parent / target).resolve()
            if path.is_relative_to(ROOT / "docs") or path.is_relative_to(ROOT / "paper"):
                shown.add(path.relative_to(ROOT).as_posix())
    assert shown <= {*picture_data.PICTURES, *picture_data.SKETCHES}
    assert shown >= picture_data.PICTURES.keys()
    files = [path for suffix in ("png", "svg") for path in ROOT.glob(f"docs/**/*.{suffix}")]
    own = {path.relative_to(ROOT).as_posix() for path in files if "gallery" not in path.parts}
    assert own <= {*picture_data.PICTURES, *picture_data.SKETCHES}


def read_cells(path, *first, after=""):
    """The further cells of the rows of a page's tables, after a text, that begin with these."""
    text = (ROOT / path).read_text("utf-8")
    lines = text[text.index(after) :].splitlines()
    rows = [line.strip("| ").replace("*", "").split(" | ") for line in lines if line[:1] == "|"]
    return [row[len(first) :] for row in rows if row[: len(first)] == [*first]]


def quoted_numbers():
    """What the README says of measurements, made of the tables to which it links."""
    calibration, engine = "studies/calibration/table.md", "benchmarks/results/inference.md"
    recorded = read_cells(calibration, "Dirichlet", "corrected", after="## (b)")
    covered = [float(number) for number in recorded[0][0].split(" / ")]  # of 10 dimensions
    yield f"contained the true value in {100 * min(covered):.0f} to {100 * max(covered):.0f} % of"
    for scenario in ("middle", "sweep", "large"):
        for _, largest, _, joint, *_ in read_cells("studies/accuracy/table.md", scenario):
            assert max(float(largest), float(joint)) <= 0.02
    yield "differ by at most 0.02 from those of long NUTS runs"
    assert float(read_cells(engine, "BSpline")[0][2]) >= 100
    yield "in about a hundredth of the time"
    kept = json.loads((ROOT / "docs" / "pictures.json").read_text("utf-8"))["docs/looking.png"]
    yield f"grows to {100 * kept['a test at 5 % after every batch'][-1]:.0f} %"
    assert kept["a race of PolarBear"][-1] < 0.05


def test_the_readme_quotes_the_numbers_of_the_committed_tables():
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    for claim in quoted_numbers():
        assert claim in text
