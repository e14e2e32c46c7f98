"""Frameworks that design algorithms let a judge evaluate, with models that propose from a list.

``pytest -m long tests/design/test_frameworks.py`` runs the loops of 30 candidates through
each framework that is installed: ``pip install gepa openevolve``, ``pip install shinka-evolve``,
``pip install llamea``, or ``pip install iohblade codebleu tree-sitter-python``, each in an
environment of its own.
"""

import copy
import json
import sys
from collections import Counter
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest

import polarbear as pb
from design_loops import LOOPS, QuietLogger
from judging import PROPOSALS, code, make_judge, make_loop_judge
from polarbear.design.judgement import Failures
from polarbear.errors import DataError
from polarbear.inference.verdicts import Verdict


@pytest.mark.slow
def test_optuna_maximises_the_fitness_and_prunes(tmp_path):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    judge = make_judge(tmp_path, max_runs=16)

    def suggest(trial):
        return code(trial.suggest_categorical("step", ["3", "1 / 0"]))

    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.GridSampler({"step": ["3", "1 / 0"]}, seed=1)
    )
    study.optimize(pb.design.make_optuna_objective(judge, suggest), n_trials=3)
    states = {trial.params["step"]: trial.state.name for trial in study.trials}
    assert states == {"3": "COMPLETE", "1 / 0": "PRUNED"}
    assert study.best_params == {"step": "3"}
    assert study.best_trial.user_attrs["judgement"]["win_rates"][-1] > 0.5
    objective = pb.design.make_optuna_objective(judge, suggest, at_times=True)
    front = optuna.create_study(directions=["maximize", "maximize"])
    front.enqueue_trial({"step": "3"})
    front.optimize(objective, n_trials=1)
    assert front.best_trials[0].values == study.best_trial.user_attrs["judgement"]["prob_ahead"]


def make_judgement(name, kind, fitness=0.5, **more):
    return pb.design.Judgement(Verdict(name, kind), fitness, **more)


def test_proposals_know_the_judgements_before():
    seen = []

    def propose(judgements):
        seen.append([judgement.fitness for judgement in judgements])
        return str(len(seen))

    def judge(candidate, *, label=""):
        return make_judgement(candidate, "member", float(candidate), label=label)

    judgements = pb.design.judge_proposals(judge, propose, 5, n_evaluators=2)
    assert [judgement.name for judgement in judgements] == ["1", "2", "3", "4", "5"]
    assert seen == [[], [], [1, 2], [1, 2], [1, 2, 3, 4]]
    assert judgements[-1].label == "candidate 5"
    with pytest.raises(DataError, match="patience=0"):
        pb.design.judge_proposals(judge, propose, 5, patience=0)
    with pytest.raises(DataError, match="n_evaluators=0"):
        pb.design.judge_proposals(judge, propose, 5, n_evaluators=0)


def test_a_loop_ends_when_the_set_is_stable():
    kinds = ["dominated", "dominated", "undecided", "removed", "equivalent", "dominated", "member"]

    def judge(candidate, *, label=""):
        return make_judgement(label, candidate)

    def count(patience):
        proposals = iter(kinds)
        loop = pb.design.judge_proposals
        return len(loop(judge, lambda _: next(proposals), len(kinds), patience=patience))

    assert [count(patience) for patience in (2, 3, 4, None)] == [2, 6, 7, 7]


def test_shinka_gets_the_two_files(tmp_path):
    def judge(candidate):
        assert "EVOLVE" not in candidate
        return make_judgement("c1", "removed", 0.0, failures=Failures(4, "ZeroDivisionError"))

    (tmp_path / "main.py").write_text("# EVOLVE-BLOCK-START\nsolve = 3\n# EVOLVE-BLOCK-END\n")
    pb.design.evaluate_for_shinka(judge, tmp_path / "main.py", tmp_path / "results")
    metrics, correct = (
        json.loads((tmp_path / "results" / f"{name}.json").read_text())
        for name in ("metrics", "correct")
    )
    assert metrics["combined_score"] == 0.0
    assert metrics["public"]["verdict"] == "removed"
    assert "Reason: ZeroDivisionError" in metrics["text_feedback"]
    assert correct["correct"] is False
    assert "ZeroDivisionError" in correct["error"]


class Solution:
    """What LLaMEA and BLADE know about a solution."""

    def __init__(self, code, name="Walk"):
        self.code, self.name, self.metadata, self.fitness = code, name, {}, None

    def set_scores(self, fitness, feedback="", error=None):
        self.fitness, self.feedback, self.error = fitness, feedback, error

    def add_metadata(self, key, value):
        self.metadata[key] = value


def judge_by_length(candidate, *, label=""):
    return make_judgement("c1", "member", len(candidate) / 10, label=label)


def test_llamea_evaluates_populations_and_single_solutions():
    evaluate = pb.design.make_llamea_evaluator(judge_by_length)
    solutions, parents = [Solution("abc"), Solution("")], [Solution("parent")]
    assert evaluate(solutions, parents, "logger") == (solutions, parents)
    assert [solution.fitness for solution in solutions] == [0.3, None]  # no code, no judgement
    assert "Fitness: 0.300" in solutions[0].feedback
    assert solutions[0].metadata["judgement"]["label"] == "Walk"
    assert parents[0].fitness is None
    assert evaluate(Solution("ab"), "logger").fitness == 0.2


def test_blade_has_a_judge_for_each_run(tmp_path, monkeypatch):
    class Problem:
        def __init__(self, name, **options):
            self.name, self.options, self.logger, self.logger_dir = name, options, None, None

    class Logger:
        rows, budget = (), 2

        def budget_exhausted(self):
            return len(self.rows) >= self.budget

        def log_individual(self, solution):
            self.rows += (solution,)

    monkeypatch.setitem(sys.modules, "iohblade", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "iohblade.problem", SimpleNamespace(Problem=Problem))
    folders = []

    def make_judge(folder):
        folders.append(folder)
        return judge_by_length

    problem = pb.design.make_blade_problem(make_judge, "Write a search.", eval_timeout=9)
    assert (problem.task_prompt, problem.options) == ("Write a search.", {"eval_timeout": 9})
    assert problem(Solution("abcd")).fitness == 0.4
    copied, logger = copy.deepcopy(problem), Logger()
    copied.logger, copied.logger_dir = logger, tmp_path
    assert [copied(Solution(text)).fitness for text in ("a", "ab", "abc")] == [0.1, 0.2, -inf]
    assert len(logger.rows) == 2
    assert folders == [Path("judge"), tmp_path / "judge", tmp_path / "judge"]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("framework", [name for name in LOOPS if name != "optuna"])
def test_frameworks_run_a_loop(tmp_path, framework):
    pytest.importorskip({"blade": "iohblade"}.get(framework, framework))
    loop = LOOPS[framework](tmp_path)
    (store,) = tmp_path.rglob("race.db")
    judge = make_loop_judge(store.parent)
    judgements = judge.judgements()
    kinds = Counter(judgement.verdict.kind for judgement in judgements)
    assert kinds["dominated"] >= 5
    assert kinds["removed"] >= 3
    assert len(judgements) < len(PROPOSALS)  # the copy with another comment is not judged again
    assert sum(judgement.copy_of is not None for judgement in judgements) >= 1
    assert any("ZeroDivisionError" in judgement.failures.why for judgement in judgements)
    assert judge.status().n_runs <= 16 * (len(judgements) + 1)
    # The judgement is found in the next prompt about a program.
    assert sum("Fitness: 0." in prompt for prompt in loop.prompts) >= len(loop.prompts) // 2
    assert loop.best.strip() in {text.strip() for text in PROPOSALS}


@pytest.mark.long
def test_gepa_logs_why_it_rejects(tmp_path):
    pytest.importorskip("gepa")
    logger = QuietLogger()
    LOOPS["gepa"](tmp_path, logger=logger)
    assert any("Dominated by" in line for line in logger.lines)
