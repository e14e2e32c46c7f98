"""Take the pictures of pages: figures, reports, a race in a terminal and in a browser.

Run it as ``PYTHONPATH=tests/support python docs/take_pictures.py`` when one of them has changed. It
takes a minute, and needs Chromium, LaTeX with siunitx, pdftoppm and what the tests need. Look at
the pictures before you keep them.
"""

import doctest
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import run_tutorials
from matplotlib import pyplot
from PIL import Image
from rich.console import Console

import browsers
import polarbear as pb
from polarbear.live.terminal import Screen

DOCS = Path(__file__).resolve().parent
PORT = 8799
SKILL = {"early": (1.3, 0.1), "late": (-0.6, 1.8), "good": (0.8, 0.9), "worst": (-1.0, -1.0)}


def solver(early: float, late: float) -> Any:
    """One that is so good at first and at last."""

    def search(job: Any) -> Iterator[tuple[float, float]]:
        luck = job.rng.gumbel()
        for step, share in enumerate((0.0, 0.5, 1.0), 1):
            time.sleep(0.02)
            yield 10**step, -luck - early * (1 - share) - late * share - 5 * step

    return search


def race(store: Path, picture: Path) -> None:
    """A race in the middle, as a terminal shows it."""
    console = Console(width=100, height=24, record=True, file=StringIO())
    hint = "Ctrl-C stops; the same command resumes. In a browser: polarbear serve race.db"
    screen = Screen("race race.toml", hint, console)
    middle = []

    def watch(progress: Any) -> None:
        screen._pace.record(time.monotonic(), progress.n_runs)
        for line in progress.news:
            screen.note(line)
        if progress.n_rounds in (1, 2, 3) and progress.n_wanted and not progress.ended:
            middle[:] = [screen.picture(progress, console.height)]

    solvers = {name: solver(*skill) for name, skill in SKILL.items()}
    rules = pb.Rules(certainty=0.95, max_runs=5_000)
    pb.race(solvers, range(1_000), [10, 100, 1_000], direction="minimize", rules=rules,
            store=store, executor=2, progress=watch).close()  # fmt: skip
    console.print(*middle)
    text = console.export_svg(title="a terminal")
    text = re.sub(r"@font-face \{.*?\}\s*", "", text, flags=re.DOTALL)  # nothing from elsewhere
    picture.write_text(text.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas"), "utf-8")


def figures(posterior: pb.Posterior, picture: Path) -> None:
    """Four figures of the example, with letters to speak of them."""
    sheet, places = pyplot.subplots(2, 2, figsize=(8.2, 6.2), layout="constrained")
    until = pb.preferences.between(3_000, 10_000)
    pb.plots.ratings(posterior, places[0, 0])
    pb.plots.values(posterior, until, places[0, 1])
    pb.plots.crossings(posterior, "CSA", "XNES", places[1, 0], certainty=0.95)
    pb.plots.evolution(pb.replay(pb.example(), pb.Rules(certainty=0.95)), places[1, 1])
    for letter, place in zip("ABCD", places.flat, strict=True):
        place.set_title(letter, loc="left", x=-0.15, pad=14, fontsize=12, fontweight="bold")
    sheet.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    sheet.savefig(picture, dpi=130)
    pyplot.close(sheet)
    Image.open(picture).convert("RGB").quantize(200).save(picture, optimize=True)  # a small file


def first_answer(posterior: pb.Posterior, picture: Path) -> None:
    """Draw the ratings of the example, for the README."""
    sheet, ax = pyplot.subplots(figsize=(6.6, 3.3), layout="constrained")
    pb.plots.ratings(posterior, ax)
    sheet.savefig(picture, dpi=150)
    pyplot.close(sheet)
    Image.open(picture).convert("RGB").quantize(200).save(picture, optimize=True)


def constraints(picture: Path) -> None:
    """Follow the race of the page on constraints, and draw when runs become feasible and good."""
    page = (DOCS / "how-to" / "order-runs.md").read_text("utf-8")
    part = page[page.index("## Constraints") : page.index("## Levels")].replace("```", "")
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(part):
        exec(example.source, names)
    runs, times = names["result"].runs, np.unique(np.geomspace(10, 1_000, 40).round())
    sheet, places = pyplot.subplots(1, 3, figsize=(9.6, 2.8), layout="constrained")
    pb.plots.ratings(pb.fit(runs, times=times), places[0])
    values = runs.feasible().at(times)
    for k, name in enumerate(runs.algorithms):
        own, line = values[runs.algorithm == k], places[0].lines[k]
        style = {"color": line.get_color(), "linestyle": ("-", "--")[k], "label": name}
        places[1].plot(times, np.isfinite(own).mean(axis=0), **style)
        places[2].plot(times, np.median(own, axis=0), **style)
    for place, title in zip(places[1:], ("share of feasible runs", "median value"), strict=True):
        place.set(xscale="log", title=title, xlabel="evaluations")
        place.legend(frameon=False)
    sheet.savefig(picture, dpi=110)
    pyplot.close(sheet)
    Image.open(picture).convert("RGB").quantize(100).save(picture, optimize=True)


def latex_table(posterior: pb.Posterior, picture: Path, folder: Path) -> None:
    """Set the table of the example with LaTeX, as a paper would show it."""
    size = "paperwidth=16.4cm,paperheight=5.1cm,margin=3mm"
    lines = [
        r"\documentclass{article}",
        rf"\usepackage[{size}]{{geometry}}",
        r"\usepackage{booktabs,siunitx}",
        r"\pagestyle{empty}\begin{document}\noindent",
        posterior.to_latex(at=[100, 890, 10_000], certainty=0.95),
        r"\end{document}",
    ]
    (folder / "table.tex").write_text("\n".join(lines), "utf-8")
    for command in (
        ["pdflatex", "-interaction=batchmode", "-halt-on-error", "table.tex"],
        ["pdftoppm", "-r", "150", "-png", "-singlefile", "table.pdf", "table"],
    ):
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    Image.open(folder / "table.png").convert("L").quantize(32).save(picture, optimize=True)


def shoot(browser: Any, address: str, picture: Path, height: int) -> None:
    """The top of a page."""
    page = browser.new_page(viewport={"width": 1080, "height": height}, device_scale_factor=1.5)
    page.goto(address)
    page.wait_for_timeout(1_500)
    page.screenshot(path=picture)
    page.close()


def served(browser: Any, store: Path, picture: Path) -> None:
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
        shoot(browser, f"http://localhost:{PORT}/", picture, 900)
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """All of them."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        here = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        run_tutorials.follow(DOCS / "tutorials" / "i-have-data.md", folder, here)
        report = folder / "seven.html"
        title = "Seven strategies on 60 problems"
        posterior = pb.fit(pb.example())
        first_answer(posterior, DOCS / "first-answer.png")
        figures(posterior, DOCS / "how-to" / "figures.png")
        constraints(DOCS / "how-to" / "constraints.png")
        latex_table(posterior, DOCS / "how-to" / "table.png", folder)
        pb.report(posterior, report, title=title, certainty=0.95)
        race(folder / "race.db", DOCS / "how-to" / "terminal.svg")
        with browsers.opened() as browser:
            tutorial = folder / "report.html"
            shoot(browser, tutorial.as_uri(), DOCS / "tutorials" / "report.png", 950)
            shoot(browser, report.as_uri(), DOCS / "how-to" / "report.png", 1_250)
            served(browser, folder / "race.db", DOCS / "how-to" / "served.png")


if __name__ == "__main__":
    main()
