"""Frameworks that design algorithms let a judge evaluate, with models that propose from a list.

``pytest -m long tests/coordinator/test_frameworks.py`` runs the loops of 30 candidates through
each framework that is installed: ``pip install gepa openevolve``.
"""

import sys
from collections import Counter

import pytest

import polarbear as pb
from judging import PROPOSALS, code, make_judge, make_loop_judge
from polarbear.errors import DataError
from stub_model import serve_answers


def check_loop(judge):
    """The judgements of a loop of all proposals: every kind has come up, at a small cost."""
    judgements = judge.judgements()
    kinds = Counter(judgement.status for judgement in judgements)
    assert kinds["dominated"] >= 5
    assert kinds["removed"] >= 3
    assert len(judgements) < len(PROPOSALS)  # the copy with another comment is not judged again
    assert sum(judgement.copy_of is not None for judgement in judgements) >= 1
    assert any("ZeroDivisionError" in judgement.failure for judgement in judgements)
    assert judge.status().n_runs <= 16 * (len(judgements) + 1)
    return judgements


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
    study.optimize(pb.frameworks.make_optuna_objective(judge, suggest), n_trials=3)
    states = {trial.params["step"]: trial.state.name for trial in study.trials}
    assert states == {"3": "COMPLETE", "1 / 0": "PRUNED"}
    assert study.best_params == {"step": "3"}
    assert study.best_trial.user_attrs["judgement"]["win_rates"][-1] > 0.5
    objective = pb.frameworks.make_optuna_objective(judge, suggest, at_times=True)
    front = optuna.create_study(directions=["maximize", "maximize"])
    front.enqueue_trial({"step": "3"})
    front.optimize(objective, n_trials=1)
    assert front.best_trials[0].values == study.best_trial.user_attrs["judgement"]["prob_ahead"]


def test_proposals_know_the_judgements_before():
    seen = []

    def propose(judgements):
        seen.append([judgement.fitness for judgement in judgements])
        return str(len(seen))

    def judge(candidate, *, label=""):
        return pb.Judgement(candidate, "member", 0.9, float(candidate), label=label)

    judgements = pb.frameworks.judge_proposals(judge, propose, 5, n_evaluators=2)
    assert [judgement.name for judgement in judgements] == ["1", "2", "3", "4", "5"]
    assert seen == [[], [], [1, 2], [1, 2], [1, 2, 3, 4]]
    assert judgements[-1].label == "candidate 5"
    with pytest.raises(DataError, match="n_evaluators=0"):
        pb.frameworks.judge_proposals(judge, propose, 5, n_evaluators=0)


@pytest.mark.long
def test_gepa_runs_a_loop(tmp_path):
    gepa = pytest.importorskip("gepa")
    judge, prompts = make_loop_judge(tmp_path), []

    def propose(prompt):
        prompts.append(str(prompt))
        return f"```python\n{PROPOSALS[len(prompts) - 1]}\n```"

    class Quiet:
        def __init__(self):
            self.lines = []

        def log(self, message):
            self.lines.append(message)

    times, logger = [10.0, 30.0], Quiet()
    result = gepa.optimize(
        {"code": code(0.3)},
        trainset=times,
        valset=times,
        adapter=pb.frameworks.GepaAdapter(judge),
        acceptance_criterion=pb.frameworks.GepaAcceptance(judge),
        reflection_lm=propose,
        reflection_prompt_template="Improve <curr_param>. Feedback: <side_info>",
        reflection_minibatch_size=len(times),
        skip_perfect_score=False,
        stop_callbacks=lambda _: len(prompts) >= len(PROPOSALS),
        logger=logger,
        raise_on_exception=True,
    )
    check_loop(judge)
    assert sum("Fitness: 0." in prompt for prompt in prompts) >= len(prompts) // 2
    assert result.best_candidate["code"].strip() in {p.strip() for p in PROPOSALS}
    assert any("Dominated by" in line for line in logger.lines)


OPENEVOLVE_EVALUATION = """
import sys
sys.path[:0] = {paths!r}
import polarbear as pb
from judging import make_loop_judge

judge = make_loop_judge({folder!r})

def evaluate(program_path):
    return pb.frameworks.evaluate_for_openevolve(judge, program_path)
"""


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_openevolve_runs_a_loop(tmp_path):
    openevolve = pytest.importorskip("openevolve")
    from openevolve.config import Config, LLMModelConfig

    folder = str(tmp_path / "judge")
    evaluation = tmp_path / "evaluation.py"
    evaluation.write_text(OPENEVOLVE_EVALUATION.format(paths=sys.path, folder=folder))
    with serve_answers([f"```python\n{text}\n```" for text in PROPOSALS]) as (url, prompts):
        config = Config()
        config.llm.models = [
            LLMModelConfig(
                name="stub", api_base=url, api_key="x", timeout=60, retries=0, retry_delay=0,
                temperature=0.7, max_tokens=1000,
            )
        ]  # fmt: skip
        config.llm.evaluator_models = config.llm.models
        config.diff_based_evolution = False
        config.database.num_islands = 1
        config.evaluator.parallel_evaluations = 2
        config.evaluator.cascade_evaluation = False
        config.log_level = "ERROR"
        result = openevolve.run_evolution(
            code(0.3), str(evaluation), config, iterations=len(PROPOSALS),
            output_dir=str(tmp_path / "out"), cleanup=False,
        )  # fmt: skip
    check_loop(make_loop_judge(folder))
    assert sum("Fitness: 0." in prompt for prompt in prompts) >= len(prompts) // 2
    assert result.best_score > 0.5
