"""Take the pictures of pages: figures, reports, a race in a terminal and in a browser.

    python docs/take_pictures.py              # all of them: a minute
    python docs/take_pictures.py terminal     # those with this in their paths

It draws what ``picture_data.py`` computes, and writes it to pictures.json. It needs Chromium and
what the tests need; the table needs LaTeX with siunitx, and pdftoppm, and is left as it is where
these are missing. Look at the pictures before you keep them.
"""

import argparse
import os
import re
import runpy
import subprocess
import sys
import time
import urllib.request
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
os.environ["MPLBACKEND"] = "agg"

import picture_data
import run_tutorials
from matplotlib import pyplot
from PIL import Image
from rich.console import Console

import browsers
import polarbear as pb
from polarbear.live.terminal import Screen

ROOT = Path(__file__).resolve().parents[1]
PORT = 8799
PAUSE_SECONDS = 0.02


def race(store: Path, picture: Path) -> None:
    """A race in the middle, as a terminal shows it."""
    colour = {"force_terminal": True, "color_system": "truecolor"}
    console = Console(width=100, height=24, record=True, file=StringIO(), **colour)
    hint = "Ctrl-C stops; the same command resumes. In a browser: polarbear serve race.db"
    screen = Screen("race.toml", hint, console)
    middle = []

    def watch(progress: Any) -> None:
        screen._pace.record(time.monotonic(), progress.n_runs)
        for line in progress.news:
            screen.note(line)
        if 0 < progress.counts.rounds <= picture_data.SHOWN_ROUND and progress.n_wanted:
            middle[:] = [screen.picture(progress, console.height)]

    pause = partial(time.sleep, PAUSE_SECONDS)
    picture_data.race(pause, store=store, executor=2, progress=watch).close()
    console.print(*middle)
    text = console.export_svg(title="a terminal")
    text = re.sub(r"@font-face \{.*?\}\s*", "", text, flags=re.DOTALL)  # nothing from elsewhere
    picture.write_text(text.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas"), "utf-8")


def shrink(picture: Path, colours: int) -> None:
    """Make a small file of a picture."""
    Image.open(picture).convert("RGB").quantize(colours).save(picture, optimize=True)


def figures(data: dict[str, Any], picture: Path) -> None:
    """Four figures of the example, with letters to speak of them."""
    sheet, places = pyplot.subplots(2, 2, figsize=(8.2, 6.2), layout="constrained")
    pb.plots.ratings(data["A"], places[0, 0])
    pb.plots.values(data["B"], ax=places[0, 1])
    pb.plots.crossings(data["C"], ax=places[1, 0])
    pb.plots.evolution(data["D"], places[1, 1])
    for letter, place in zip(data, places.flat, strict=True):
        place.set_title(letter, loc="left", x=-0.15, pad=14, fontsize=12, fontweight="bold")
    sheet.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    sheet.savefig(picture, dpi=130)
    pyplot.close(sheet)
    shrink(picture, 200)


def first_answer(data: dict[str, Any], picture: Path) -> None:
    """Draw the ribbon and the ratings of the example, for the README."""
    sheet, (top, below) = pyplot.subplots(
        2, 1, figsize=(6.6, 4.0), layout="constrained", height_ratios=[1, 5]
    )
    pb.plots.ribbon(data["ribbon"], top)
    pb.plots.ratings(data["ratings"], below)
    sheet.savefig(picture, dpi=150)
    pyplot.close(sheet)
    shrink(picture, 200)


def looking(data: dict[str, Any], picture: Path) -> None:
    """Draw how many races have called one of two equal algorithms better, for the README."""
    sheet, place = pyplot.subplots(figsize=(6.6, 2.3), layout="constrained")
    instances = data["instances"]
    for (name, share), style in zip(list(data.items())[1:], ("--", "-"), strict=True):
        (line,) = place.plot(instances, 100 * share, style, lw=2)
        place.annotate(
            f"{name}: {100 * share[-1]:.0f} %" if share[-1] >= 0.01 else f"{name}: < 1 %",
            (instances[-1], max(100 * share[-1], 5)), xytext=(-4, 4), textcoords="offset points",
            ha="right", va="bottom", color=line.get_color(),
        )  # fmt: skip
    place.axhline(5, color="0.6", lw=1, ls=":")
    place.annotate("5 %", (4, 5), xytext=(0, 3), textcoords="offset points", color="0.4")
    place.set_xlabel("Instances, with a look after every batch")
    place.set_ylabel("Called one better (%)")
    place.set_title("Two equal algorithms", loc="left", fontsize=10)
    place.set_xlim(0, instances[-1])
    place.set_ylim(0, None)
    place.margins(y=0.2)
    place.spines[["top", "right"]].set_visible(False)
    sheet.savefig(picture, dpi=150)
    pyplot.close(sheet)
    shrink(picture, 200)


def preview(data: dict[str, Any], picture: Path) -> None:
    """Draw what others see of a link to the pages: 1200 x 630 pixels."""
    sheet, (top, below) = pyplot.subplots(
        2, 1, figsize=(5.0, 2.625), layout="constrained", height_ratios=[2, 5]
    )
    sheet.suptitle("Which optimisation algorithm should I run?", fontsize=12, fontweight="bold")
    pb.plots.ribbon(data["ribbon"], top)
    pb.plots.ratings(data["ratings"], below)
    sheet.savefig(picture, dpi=240)
    pyplot.close(sheet)
    shrink(picture, 200)


def constraints(data: dict[str, Any], picture: Path) -> None:
    """Draw when the runs of the page on constraints become feasible and good."""
    sheet, places = pyplot.subplots(1, 3, figsize=(9.6, 2.8), layout="constrained")
    ratings = data["ratings"]
    pb.plots.ratings(ratings, places[0])
    for place, title in zip(places[1:], ("share of feasible runs", "median value"), strict=True):
        for k, (name, curve) in enumerate(data[title].items()):
            colour = ratings.cast.styles()[name].colour
            place.plot(ratings.times, curve, color=colour, linestyle=("-", "--")[k], label=name)
        place.set(xscale="log", title=title, xlabel="evaluations")
        place.legend(frameon=False)
    sheet.savefig(picture, dpi=110)
    pyplot.close(sheet)
    shrink(picture, 100)


def shoot(
    address: str, picture: Path, height: int, *, width: int = 1080, scale: float = 1.5
) -> None:
    """The top of a page."""
    size: Any = {"width": width, "height": height}
    with browsers.opened() as browser:
        page = browser.new_page(viewport=size, device_scale_factor=scale)
        page.goto(address)
        page.wait_for_timeout(1_500)
        page.screenshot(path=picture)
    shrink(picture, 200)


def served(store: Path, picture: Path) -> None:
    """The page that ``polarbear serve`` shows of a store."""
    command = [sys.executable, "-m", "polarbear", "serve", str(store), "--port", str(PORT)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://localhost:{PORT}/", timeout=30).read()
                break
            except OSError:
                time.sleep(0.3)
        shoot(f"http://localhost:{PORT}/", picture, 900)
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Take those that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[""], help="of the paths of pictures")
    parts, begin = parser.parse_args().parts, time.monotonic()
    wanted = [name for name in picture_data.PICTURES if any(part in name for part in parts)]
    data = {name: picture_data.PICTURES[name]() for name in wanted}
    with TemporaryDirectory() as name:
        for picture, shown in data.items():
            take(picture, shown, Path(name))
            print(f"{picture} (after {time.monotonic() - begin:.0f} s)", flush=True)
    picture_data.keep(data)


def take(name: str, data: dict[str, Any], folder: Path) -> None:
    """Take one picture, with files in a folder that all of them share."""
    picture, store, report = ROOT / name, folder / "race.db", folder / "report.html"
    match name.removeprefix("docs/"):
        case "_static/preview.png":
            preview(data, picture)
        case "first-answer.png":
            first_answer(data, picture)
        case "looking.png":
            looking(data, picture)
        case "how-to/constraints.png":
            constraints(data, picture)
        case "how-to/figures.png":
            figures(data, picture)
        case "how-to/report.png":
            title = "Seven strategies on 60 problems"
            posterior = picture_data.fit_example()
            pb.report(posterior, report, title=title, certainty=picture_data.CERTAINTY)
            shoot(report.as_uri(), picture, 900)
        case first if first.startswith("design/first-screens/"):
            pb.report(picture_data.make_subject(picture.stem), report, title="My problems")
            width, height = (390, 844) if picture.stem == "fifty" else (1440, 900)
            picture.parent.mkdir(exist_ok=True)
            shoot(report.as_uri(), picture, height, width=width, scale=1)
        case "tutorials/report.png":
            here = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
            here["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), here.get("PYTHONPATH", "")])
            page = ROOT / "docs" / "tutorials" / "i-have-data.md"
            if wrong := run_tutorials.follow(page, folder, here):
                raise SystemExit("\n".join(wrong))
            shoot(report.as_uri(), picture, 800)
        case "how-to/terminal.svg":
            race(store, picture)  # which served.png shows at its end
        case "how-to/served.png":
            if not store.exists():
                race(store, folder / "terminal.svg")
            served(store, picture)
        case "paper/figure.png":
            runpy.run_path(str(ROOT / "paper" / "make_figures.py"), run_name="__main__")
            shrink(picture, 200)


if __name__ == "__main__":
    main()
