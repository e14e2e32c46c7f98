"""Loops of thirty candidates through design frameworks, with models that propose from a list.

Each loop takes a folder and ``own``: candidates are evaluated by a judge, or as the examples of the
frameworks do it, by the mean score on some instances. Frameworks are imported when they are used.
"""

import json
import multiprocessing
import os
import resource
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

import polarbear as pb
from judging import PROPOSALS, TIMES, code, make_loop_judge
from stub_model import serve_answers

load_code = pb.design.load_code  # imported here, and not by the process of each program

REFERENCE = code(0.3)

N_INSTANCES = 20
"""The number of instances of the frameworks' own evaluation."""

OWN_SECONDS = 2
"""The limit of CPU time of the frameworks' own evaluation of a program."""


class Loop(NamedTuple):
    """The prompts that a model received, and the best program by the framework."""

    prompts: list
    best: str


def measure(text, folder, instances=range(N_INSTANCES)):
    """Return the scores of a program on instances, larger is better; None if it fails.

    A row in the folder says how many runs it took.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_send_values, args=(theirs, text, list(instances), 0)
    )
    process.start()
    theirs.close()
    try:
        values = ours.recv() if ours.poll(100 * OWN_SECONDS) else None
    except EOFError:
        values = None
    process.kill()
    process.join()
    Path(folder).mkdir(parents=True, exist_ok=True)
    with Path(folder, "own.jsonl").open("a") as file:
        file.write(json.dumps({"runs": 1 if values is None else len(values)}) + "\n")
    return None if values is None else [-last[-1] for last in values]


def _send_values(connection, text, instances, seed):
    resource.setrlimit(resource.RLIMIT_CPU, (OWN_SECONDS, OWN_SECONDS + 1))
    with Path(os.devnull).open("w") as sys.stdout:
        connection.send(run_program(text, instances, seed))


def run_program(text, instances, seed):
    """Return the values of a program at the times of the race on some instances."""
    values = []
    for k in instances:
        job = SimpleNamespace(
            instance=np.random.default_rng([seed, k]).normal(),
            rng=np.random.default_rng([seed, k, 1]),
        )
        found = list(load_code(text)["walk"](job))
        values.append([min(v for t, v in found if t <= time) for time in TIMES])
    return values


def score(text, folder):
    """Return the mean score of a program; None if it fails."""
    scores = measure(text, folder)
    return None if scores is None else float(np.mean(scores))


def describe(value):
    return "The program failed." if value is None else f"Mean score: {value:.3f}"


def fence(text):
    return f"```python\n{text}\n```"


# Optuna


def run_optuna(folder, own=False):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def suggest(trial):
        return PROPOSALS[trial.suggest_int("program", 0, len(PROPOSALS) - 1)]

    def objective(trial):
        value = score(suggest(trial), folder)
        if value is None:
            raise ValueError("failed")
        return value

    judged = pb.design.make_optuna_objective(make_loop_judge(folder), suggest)
    study = optuna.create_study(direction="maximize")
    for k in range(len(PROPOSALS)):
        study.enqueue_trial({"program": k})
    study.optimize(objective if own else judged, n_trials=len(PROPOSALS), catch=ValueError)
    return Loop([], PROPOSALS[study.best_params["program"]])


# GEPA


class OwnGepaAdapter:
    """The examples are instances, which is how GEPA is used without a judge."""

    propose_new_texts = None

    def __init__(self, folder):
        self.folder = folder

    def evaluate(self, batch, candidate, capture_traces=False):
        from gepa.core.adapter import EvaluationBatch

        scores = measure(candidate["code"], self.folder, batch) or [-100.0] * len(batch)
        return EvaluationBatch(
            outputs=scores, scores=scores, trajectories=scores if capture_traces else None
        )

    def make_reflective_dataset(self, candidate, eval_batch, components_to_update):
        del candidate
        record = {"Feedback": describe(float(np.mean(eval_batch.scores)))}
        return {name: [record] for name in components_to_update}


class QuietLogger:
    def __init__(self):
        self.lines = []

    def log(self, message):
        self.lines.append(message)


def run_gepa(folder, own=False, logger=None):
    import gepa

    prompts = []

    def propose(prompt):
        prompts.append(str(prompt))
        return fence(PROPOSALS[len(prompts) - 1])

    if own:
        examples = list(range(N_INSTANCES))
        options = {"adapter": OwnGepaAdapter(folder)}
    else:
        judge, examples = make_loop_judge(folder), [float(time) for time in TIMES]
        options = {
            "adapter": pb.design.GepaAdapter(judge),
            "acceptance_criterion": pb.design.GepaAcceptance(judge),
            "reflection_minibatch_size": len(examples),
        }
    result = gepa.optimize(
        {"code": REFERENCE},
        trainset=examples,
        valset=examples,
        reflection_lm=propose,
        reflection_prompt_template="Improve <curr_param>. Feedback: <side_info>",
        skip_perfect_score=False,
        stop_callbacks=lambda _: len(prompts) >= len(PROPOSALS),
        logger=logger or QuietLogger(),
        raise_on_exception=True,
        **options,
    )
    return Loop(prompts, result.best_candidate["code"])


# OpenEvolve and ShinkaEvolve evaluate in other processes, by a program


PROGRAM = """
import sys
sys.path[:0] = {paths!r}
from design_loops import {function}

def evaluate(*arguments):
    return {function}(*arguments, folder={folder!r}, own={own!r})
"""

AS_COMMAND = """
if __name__ == "__main__":
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    evaluate(options["--program_path"], options["--results_dir"])
"""


def write_program(path, function, folder, own, rest=""):
    text = PROGRAM.format(paths=sys.path, function=function, folder=str(folder), own=own)
    Path(path).write_text(text + rest)
    return str(path)


def evaluate_openevolve(program_path, *, folder, own):
    if not own:
        return pb.design.evaluate_for_openevolve(make_loop_judge(folder), program_path)
    value = score(Path(program_path).read_text(), folder)
    return {"combined_score": -100.0 if value is None else value}


def run_openevolve(folder, own=False):
    import openevolve
    from openevolve.config import Config, LLMModelConfig

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = write_program(folder / "evaluation.py", "evaluate_openevolve", folder / "judge", own)
    with serve_answers([fence(text) for text in PROPOSALS]) as (url, prompts):
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
            REFERENCE, path, config, iterations=len(PROPOSALS), output_dir=str(folder / "out"),
            cleanup=False,
        )  # fmt: skip
    return Loop(prompts, result.best_code)


def evaluate_shinka(program_path, results_dir, *, folder, own):
    if not own:
        pb.design.evaluate_for_shinka(make_loop_judge(folder), program_path, results_dir)
        return
    value = score(Path(program_path).read_text(), folder)
    metrics = {"combined_score": 0.0 if value is None else value, "text_feedback": describe(value)}
    Path(results_dir).mkdir(parents=True, exist_ok=True)
    Path(results_dir, "metrics.json").write_text(json.dumps(metrics))
    correct = {"correct": value is not None, "error": "It failed." if value is None else None}
    Path(results_dir, "correct.json").write_text(json.dumps(correct))


def run_shinka(folder, own=False):
    from shinka.core import EvolutionConfig, ShinkaEvolveRunner
    from shinka.database import DatabaseConfig
    from shinka.launch import LocalJobConfig

    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    path = write_program(
        folder / "evaluate.py", "evaluate_shinka", folder / "judge", own, AS_COMMAND
    )
    initial, results = folder / "initial.py", folder / "out"
    initial.write_text(mark(REFERENCE))
    answers = [
        f"<NAME>\nn{k}\n</NAME>\n<DESCRIPTION>\nx\n</DESCRIPTION>\n<CODE>\n{fence(mark(text))}\n</CODE>"
        for k, text in enumerate(PROPOSALS)
    ]
    with serve_answers(answers) as (url, prompts):
        evolution = EvolutionConfig(
            task_sys_msg="Improve the search.",
            patch_types=["full"],
            patch_type_probs=[1.0],
            num_generations=len(PROPOSALS) + 1,
            max_patch_resamples=1,
            llm_models=[f"local/stub@{url}"],
            llm_dynamic_selection=None,
            llm_kwargs={"temperatures": 0.5, "max_tokens": 1000},
            meta_rec_interval=None,
            embedding_model=None,
            init_program_path=str(initial),
            results_dir=str(results),
            use_text_feedback=True,
        )
        ShinkaEvolveRunner(
            evolution,
            LocalJobConfig(eval_program_path=path, python_executable=sys.executable),
            DatabaseConfig(num_islands=1, db_path="programs.sqlite"),
            verbose=False,
            max_evaluation_jobs=2,
            max_proposal_jobs=1,
        ).run()
    scores = {
        file.parent.parent / "main.py": json.loads(file.read_text())["combined_score"]
        for file in results.glob("gen_*/results/metrics.json")
        if json.loads(file.with_name("correct.json").read_text())["correct"]
    }
    best = max(scores, key=lambda program: scores[program]).read_text()
    return Loop(prompts, "\n".join(line for line in best.splitlines() if "EVOLVE-" not in line))


def mark(text):
    return f"# EVOLVE-BLOCK-START\n{text}\n# EVOLVE-BLOCK-END\n"


# LLaMEA and BLADE


def answer_for_llamea(number):
    return f"# Description: number {number}\n# Code:\n{fence(PROPOSALS[number])}"


def set_own_score(solution, folder):
    value = score(solution.code, folder) if solution.code else None
    solution.set_scores(-100.0 if value is None else value, describe(value))
    return solution


def run_llamea(folder, own=False):
    from llamea import LLaMEA
    from llamea.llm import LLM

    class Listed(LLM):
        def __init__(self):
            super().__init__(api_key="", model="listed")
            self.prompts = []

        def query(self, session):
            self.prompts.append(session[-1]["content"])
            return answer_for_llamea(len(self.prompts) - 1)

    def evaluate(solution, _logger=None):
        return set_own_score(solution, folder)

    model = Listed()
    search = LLaMEA(
        evaluate if own else pb.design.make_llamea_evaluator(make_loop_judge(folder)),
        model,
        n_parents=3,
        n_offspring=3,
        budget=len(PROPOSALS),
        evaluate_population=not own,
        parallel_backend="threading",
        max_workers=1,
        log=False,
    )
    return Loop(model.prompts, search.run().code)


def run_blade(folder, own=False):
    from iohblade.experiment import Experiment
    from iohblade.llm import LLM
    from iohblade.loggers import ExperimentLogger
    from iohblade.methods import LLaMEA

    prompts = []

    class Listed(LLM):
        def __init__(self):
            super().__init__("", "listed", None)

        def _query(self, session, **_options):
            prompts.append(session[-1]["content"])
            return answer_for_llamea(len(prompts) - 1)

        def get_config(self):
            return [{"name": "listed"}]

    problem = pb.design.make_blade_problem(make_loop_judge, "Write a search.", name="walks")
    if own:
        folder = Path(folder)
        type(problem).evaluate = lambda _, solution: set_own_score(solution, folder / "own")
    options = {"n_parents": 3, "n_offspring": 3, "parallel_backend": "threading"}
    Experiment(
        [LLaMEA(Listed(), budget=len(PROPOSALS), **options)],
        [problem],
        runs=1,
        budget=len(PROPOSALS),
        show_stdout=False,
        exp_logger=ExperimentLogger(str(folder)),
    )()
    (log,) = Path(folder).parent.rglob(f"{Path(folder).name}*/**/log.jsonl")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    return Loop(prompts, max(rows, key=lambda row: float(row["fitness"]))["code"])


LOOPS = {
    "optuna": run_optuna,
    "gepa": run_gepa,
    "openevolve": run_openevolve,
    "shinka": run_shinka,
    "llamea": run_llamea,
    "blade": run_blade,
}
