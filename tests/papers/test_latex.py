"""LaTeX tables and methods paragraphs of posteriors and races."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import polarbear as pb
from polarbear.papers.latex import ESCAPES, escape_latex

TRUTH = np.array([[2.0, 0.0, -3.0], [1.0, 1.0, -3.0], [0.0, 2.0, -3.0]])
TIMES = np.array([10.0, 2500.0, 40_000.0])
EVIL = (r"[a]_{b} 50 % \ ~^", "*<c> & $d$ #|", 'e "f" Jörg')


def rankings(truth=TRUTH):
    data = pb.simulation.simulate_rankings(truth, 120, seed=3, times=TIMES)
    return replace(data, clock="evaluations")


def cells(table):
    """Return the rows of a table as lists of cells."""
    body = table.split("\\midrule\n")[1].split("\\bottomrule")[0]
    return [row.removesuffix(" \\\\").split(" & ") for row in body.splitlines()]


@pytest.fixture(scope="module")
def posterior():
    return pb.fit(rankings())


@pytest.fixture(scope="module")
def recorded():
    return pb.simulation.simulate_runs(TRUTH, 150, 3, TIMES)


def test_a_table_has_the_numbers_of_the_posterior(posterior):
    table = pb.papers.to_latex(posterior)
    rows = {row[0]: row[1:] for row in cells(table)}
    assert rows["a1"][0] == "worth running"
    assert float(rows["a1"][1].removeprefix("> ")) >= 0.999
    assert rows["a1"][2] == r"\num{10}"
    assert rows["a2"][2] == r"\num{2500}--\num{40000}"
    assert [*rows][-1] == "a3"
    assert rows["a3"][0].startswith("replaceable by a")
    mean, deviation = posterior.mean("a1"), posterior.ratings[..., 0].std(axis=0)
    for cell, value, spread in zip(rows["a1"][3:], mean, deviation, strict=True):
        shown, digits = re.fullmatch(r"([\d.]+)\((\d+)\)", cell).groups()
        assert float(shown) == pytest.approx(value, abs=5e-4)
        assert 0 <= int(digits) - 1000 * spread < 1.0001
    assert "Rating at time (evaluations)" in table
    heads = r"{\num{10}} & {\num{2500}} & {\num{40000}}"
    assert heads in table


def test_a_column_is_headed_by_the_time_asked_for_and_says_which_it_is(posterior):
    table = pb.papers.to_latex(posterior, at=[39_000, 10])
    assert r"{\num{10}} & {\num{39000}} \\" in table
    assert r"was compared: \num{2500} for \num{39000}.} \\" in table
    rating = [row[-1] for row in cells(table)]
    assert rating == [row[-2] for row in cells(pb.papers.to_latex(posterior))]  # that at 2500
    assert "footnotesize" not in pb.papers.to_latex(posterior, at=[10, 2500])
    for wrong in ([5], [1e6], [], ["soon"], [np.nan]):
        with pytest.raises(pb.DataError, match="expected times from 10 to 40000"):
            pb.papers.to_latex(posterior, at=wrong)


def test_a_race_has_a_row_for_each_algorithm(recorded):
    race = pb.replay(recorded)
    rows = {row[0]: row[1:] for row in cells(pb.papers.to_latex(race))}
    assert rows["a3"][0] == f"replaceable by {race.eliminated['a3'].rival}"
    assert {rows[name][0] for name in race.pareto} == {"worth running"}
    begun = pb.Race(["a", "b"], [1, 2], direction="minimize")
    assert cells(pb.papers.to_latex(begun)) == [
        ["a", "undecided", "{--}"],
        ["b", "undecided", "{--}"],
    ]
    assert pb.papers.describe_methods(begun).endswith("all of these are undecided.")


def test_characters_of_latex_are_escaped():
    for character in ESCAPES:
        assert escape_latex(character) != character
    assert escape_latex("a\nb") == r"a\textbackslash{}nb"
    assert escape_latex("CMA-ES (1+1)") == "CMA-ES (1+1)"


def test_the_paragraph_of_a_posterior_has_its_numbers(posterior):
    text = pb.papers.describe_methods(posterior, certainty=0.9, margin=0.2)
    assert text.startswith(
        "We compared 3 algorithms on 120 instances at 3 times from 10 to 40,000 evaluations with "
        f"PolarBear {pb.__version__} (numpy {np.__version__}, "
    )
    rule = "at least 30% of them on each stretch of 10%"
    for part in (posterior.prior, "0.9 or more", rule, "{a1, a2}"):
        assert part in text
    assert text.endswith("wrongly called replaceable with posterior probability < 1 %.")
    equal = pb.fit(rankings(0 * TRUTH))
    assert "At least one" not in pb.papers.describe_methods(equal, certainty=0.999)


@pytest.mark.parametrize(
    ("question", "runs", "parts"),
    [
        (
            pb.ParetoSet(),
            None,
            ["better on average over all times", "wrongly dropped with probability at most 0.05"],
        ),
        (
            pb.PaperParetoSet(),
            None,
            ["posterior probability 0.99 or more", "makes errors more frequent"],
        ),
        (pb.Choice(pb.preferences.at(10)), None, ["at a known budget", "Chosen: a1."]),
        (pb.NoWorse("a1"), None, ["tested against a1", "Failed: a2, a3."]),
        (pb.ParetoSet(), 24, ["(budget of runs spent)", "stayed open", "are undecided"]),
    ],
)
def test_the_paragraph_of_a_race_says_how_it_decided(recorded, question, runs, parts):
    race = pb.replay(recorded, question, budget=pb.Budget(runs=runs))
    text = pb.papers.describe_methods(race)
    for part in [*parts, question.guarantee, f"made {race.n_runs:,} runs in {race.rounds} round"]:
        assert part in text


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex with siunitx")
def test_tables_compile(tmp_path, posterior, recorded):
    """Needs texlive-latex-recommended and texlive-science of Debian, or the same of others."""
    race = pb.Race(EVIL, [1, 2], direction="minimize")
    for job in race.ask():
        race.tell(job.run([1, 2], [EVIL.index(job.algorithm)] * 2))
    race.ask()
    tables = [pb.papers.to_latex(replace(posterior, algorithms=EVIL)), pb.papers.to_latex(race)]
    tables += [
        pb.papers.to_latex(posterior, at=[10, 39_000]),
        pb.papers.to_latex(pb.replay(recorded)),
    ]
    lines = [r"\documentclass{article}", r"\usepackage{booktabs,siunitx}", r"\begin{document}"]
    (tmp_path / "t.tex").write_text("\n\n".join([*lines, *tables, r"\end{document}"]), "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "LaTeX Warning" not in done.stdout
