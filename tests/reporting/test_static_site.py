"""A race as a folder of static pages: what they hold, what stays, and how they look."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

import browsers
import polarbear as pb
from polarbear.cli.main import main
from polarbear.racing.events import Added, Decided, Eliminated, Removed, Withdrawn
from polarbear.reporting.static_site import _count_sizes, write_site
from racers import drive, per_look, race_of, solve

LINK = re.compile(r'href="([^"#:]+)"')
DAYS = [datetime(2030, 1, day, tzinfo=UTC) for day in (1, 2)]


def race_with_newcomer():
    """A race before and after an algorithm joins, as events."""
    race = race_of(("early", "bad", "worst"), fit=pb.fit, rules=per_look(max_runs=200))
    drive(race)
    before = list(race.events)
    race.add("late")
    while jobs := race.ask():
        for job in jobs:
            race.tell(solve(job))
    return before, list(race.events)


def test_a_site_grows_with_the_race_and_old_conclusions_stay(tmp_path):
    before, after = race_with_newcomer()
    n_files = write_site(before, tmp_path, title="Night <race>", now=DAYS[0])
    old = json.loads((tmp_path / "board.json").read_text())
    assert n_files == len([path for path in tmp_path.rglob("*") if path.is_file()]) == 9
    write_site(after, tmp_path, title="Night <race>", url="https://races.example.org", now=DAYS[1])
    new = json.loads((tmp_path / "board.json").read_text())
    # Entries keep their text and their date; a newcomer adds some and changes none.
    assert new["history"][: len(old["history"])] == old["history"]
    assert {entry["date"][:10] for entry in new["history"]} == {"2030-01-01", "2030-01-02"}
    eliminated = {s["algorithm"] for s in old["status"]["statuses"] if s["status"] == "dominated"}
    assert eliminated
    assert eliminated <= {
        s["algorithm"] for s in new["status"]["statuses"] if s["status"] == "dominated"
    }
    assert "late" in new["pages"]
    for path in tmp_path.rglob("*.html"):
        text = path.read_text("utf-8")
        assert "Night <race>" not in text
        if path.name != "report.html":
            for target in LINK.findall(text):
                assert (path.parent / target).exists(), (path.name, target)
    assert "polarbear worker https://races.example.org" in (tmp_path / "join.html").read_text()


def test_feeds_are_valid_and_name_withdrawals(tmp_path):
    before, _ = race_with_newcomer()
    race = pb.Race.from_events(before)
    race.withdraw("bad", why="worker 1234 quarantined", at="2030-01-01")
    assert isinstance(race.events[-1], Withdrawn)
    write_site(race.events, tmp_path, title="a & b \x07", now=DAYS[0])
    space = {"atom": "http://www.w3.org/2005/Atom"}
    feed = ElementTree.parse(tmp_path / "feed.atom").getroot()
    titles = [one.text for one in feed.findall("atom:entry/atom:title", space)]
    assert "worker 1234 quarantined; all pairs are reopened" in titles[0]
    ids = [one.text for one in feed.findall("atom:entry/atom:id", space)]
    items = json.loads((tmp_path / "feed.json").read_text())["items"]
    assert [item["id"] for item in items] == ids
    assert len(ids) == len(set(ids)) > 3


def test_the_command_writes_a_site(tmp_path, capsys):
    with pb.open_store(tmp_path / "race.db") as store:
        store.append(race_with_newcomer()[0])
    assert main(["board", str(tmp_path / "race.db"), str(tmp_path / "site")]) == 0
    assert "9 files, begin with" in capsys.readouterr().out
    assert "<title>Race race.db</title>" in (tmp_path / "site" / "index.html").read_text()
    assert main(["board", str(tmp_path / "race.db"), str(tmp_path / "race.db")]) == 1


@pytest.mark.slow
@pytest.mark.skipif(bool(browsers.why_not()), reason=browsers.why_not())
def test_pages_fit_a_desk_and_a_phone(tmp_path):
    write_site(race_with_newcomer()[1], tmp_path, title="Race " + "long" * 30)
    page = next(Path(tmp_path / "algorithms").iterdir())
    with browsers.opened() as browser:
        for path in (tmp_path / "index.html", page, tmp_path / "join.html"):
            for width in (1440, 390):
                with browsers.Visit(browser, path.as_uri(), width=width) as visit:
                    wide = visit.page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= width, (path.name, width)
                    assert not visit.errors


def test_sizes_of_the_set_follow_removed_dominators():
    joined = [Added(name) for name in "abc"]
    out = Decided(0, (Eliminated("b", "a", 1.0),), (), 8)
    none = Decided(1, (), (), 8)
    assert list(_count_sizes([*joined, out, Removed("a", ""), none])) == [(2, 3), (2, 3)]
    assert list(_count_sizes([*joined, out, Removed("b", ""), Removed("a", ""), none])) == [
        (2, 3),
        (1, 3),
    ]
