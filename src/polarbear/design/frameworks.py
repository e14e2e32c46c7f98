"""Let a judge evaluate the candidates of frameworks that design algorithms.

Each function is what a framework calls for a candidate. A candidate is judged once, however often
the framework asks. Only the function that needs a framework imports it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from polarbear.design.candidates import Candidate
from polarbear.design.judgement import Judgement
from polarbear.errors import DataError, require


class JudgeFunction(Protocol):
    """A :class:`polarbear.design.Judge`, or a function with the same arguments."""

    def __call__(self, candidate: Candidate, *, label: str = "") -> Judgement:
        """Judge a candidate, and return the judgement."""
        ...


def judge_proposals(
    judge: JudgeFunction,
    propose: Callable[[list[Judgement]], Candidate],
    n_candidates: int,
    *,
    n_evaluators: int = 1,
    patience: int | None = None,
) -> list[Judgement]:
    """Propose and judge candidates one after the other, and return all judgements.

    ``propose`` is called with the judgements so far. With several evaluators this number of
    candidates is proposed and judged at the same time. With ``patience`` the loop ends when the set
    is stable: when none of this number of candidates in a row has entered it. One that is
    equivalent to another does not count as new.

    >>> from polarbear import Verdict
    >>> def judge(candidate, *, label=""):
    ...     return Judgement(Verdict(label, "member", 0.9), fitness=1 / (1 + (candidate - 3) ** 2))
    >>> judgements = judge_proposals(judge, len, 4)
    >>> [round(judgement.fitness, 2) for judgement in judgements]
    [0.1, 0.2, 0.5, 1.0]
    """
    for name, number in (("n_evaluators", n_evaluators), ("patience", patience)):
        if number is not None and number < 1:
            raise DataError("expected a number of at least 1", **{name: number})
    judgements: list[Judgement] = []
    with ThreadPoolExecutor(n_evaluators) as pool:
        while len(judgements) < n_candidates and not _is_stable(judgements, patience):
            n_next = min(n_evaluators, n_candidates - len(judgements))
            batch = [propose(list(judgements)) for _ in range(n_next)]
            labels = [f"candidate {len(judgements) + k + 1}" for k in range(n_next)]
            judgements += pool.map(lambda one, label: judge(one, label=label), batch, labels)
    return judgements


def _is_stable(judgements: Sequence[Judgement], patience: int | None) -> bool:
    """Return whether none of the last candidates has entered the set."""
    if patience is None or len(judgements) < patience:
        return False
    return not any(
        judgement.is_accepted
        and judgement.verdict.kind not in ("equivalent", "baseline")
        and judgement.copy_of is None
        for judgement in judgements[-patience:]
    )


def make_optuna_objective(
    judge: JudgeFunction, suggest: Callable[[Any], Candidate], *, at_times: bool = False
) -> Callable[[Any], Any]:
    """Return an objective function for a study of Optuna that maximises fitness.

    ``suggest`` makes a configuration from a trial. The value is the fitness; with ``at_times`` the
    values are the probabilities of being ahead of the reference at each time, for a study with as
    many directions. A trial that is dominated or removed is pruned with its fitness; Optuna has no
    pruning with several values. ``trial.user_attrs["judgement"]`` is the judgement as JSON.

    >>> from polarbear import Verdict
    >>> def judge(candidate, *, label=""):
    ...     return Judgement(Verdict(label, "member", 0.9), fitness=1 / (1 + candidate["x"] ** 2))
    >>> def suggest(trial):
    ...     return {"x": trial.suggest_float("x", -1, 1)}
    >>> objective = make_optuna_objective(judge, suggest)
    >>> import optuna                                               # doctest: +SKIP
    >>> study = optuna.create_study(direction="maximize")           # doctest: +SKIP
    >>> study.optimize(objective, n_trials=20)                      # doctest: +SKIP
    """

    def objective(trial: Any) -> float | list[float]:
        judgement = judge(suggest(trial), label=f"trial {trial.number}")
        trial.set_user_attr("judgement", judgement.to_dict())
        if at_times:
            return list(judgement.prob_ahead)
        if not judgement.is_accepted:
            optuna = require("optuna", extra="optuna")
            trial.report(judgement.fitness, step=judgement.cost.runs)
            raise optuna.TrialPruned(str(judgement))
        return judgement.fitness

    return objective


class GepaAdapter:
    """An adapter for the framework GEPA, in which the times of a race take the place of examples.

    Pass the times as ``trainset`` and ``valset``: GEPA's frontier over examples is then the anytime
    Pareto set of its candidates. The score of a time is the probability of being ahead of the
    reference then. ``component`` is the part of a candidate of GEPA that is judged.

    >>> adapter = GepaAdapter(judge=None, component="code")
    >>> adapter.component, adapter.propose_new_texts is None
    ('code', True)
    """

    propose_new_texts = None  # GEPA proposes by its own reflection

    def __init__(self, judge: JudgeFunction, component: str = "code") -> None:
        self.judge, self.component = judge, component

    def evaluate(
        self, batch: Sequence[float], candidate: Mapping[str, str], capture_traces: bool = False
    ) -> Any:
        """Return the scores of a GEPA candidate at some times of the race."""
        adapter = require("gepa.core.adapter", extra="gepa")
        judgement = self.judge(candidate[self.component])
        ahead = dict(zip(judgement.times, judgement.prob_ahead, strict=True))
        scores = [
            0.0 if judgement.verdict.kind == "removed" else ahead[float(time)] for time in batch
        ]
        traces = [judgement] * len(batch) if capture_traces else None
        return adapter.EvaluationBatch(
            outputs=[judgement.verdict.kind] * len(batch), scores=scores, trajectories=traces
        )

    def make_reflective_dataset(
        self, candidate: Mapping[str, str], eval_batch: Any, components_to_update: Sequence[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the judgement of a candidate as feedback for GEPA's next prompt."""
        del candidate
        judgement: Judgement = eval_batch.trajectories[0]
        record = {"Verdict": judgement.verdict.kind, "Feedback": judgement.describe("long")}
        return {name: [record] for name in components_to_update}


class GepaAcceptance:
    """GEPA's acceptance criterion: accept a proposal that is neither dominated nor removed.

    >>> from polarbear import Verdict
    >>> def judge(candidate, *, label=""):
    ...     return Judgement(Verdict("c1", "dominated", 0.99, rival="reference"), 0.2)
    >>> from types import SimpleNamespace
    >>> proposal = SimpleNamespace(candidate={"code": "..."})
    >>> GepaAcceptance(judge).should_accept(proposal, None)
    False
    """

    def __init__(self, judge: JudgeFunction, component: str = "code") -> None:
        self.judge, self.component = judge, component

    def should_accept(self, proposal: Any, state: Any) -> bool:
        """Return whether GEPA should accept a proposal."""
        del state
        return self.judge(proposal.candidate[self.component]).is_accepted

    def reject_reason(self, proposal: Any, state: Any) -> str:
        """Return why a proposal is rejected, for the log of GEPA."""
        del state
        return str(self.judge(proposal.candidate[self.component]))


def evaluate_for_openevolve(judge: JudgeFunction, program_path: str | PathLike[str]) -> Any:
    """Return the judgement of a program in the form that an OpenEvolve evaluation file returns.

    ``combined_score`` is the fitness. The judgement is an artifact, which OpenEvolve shows in the
    next prompt about this program. Set ``cascade_evaluation=False``: the race is the cascade.

    >>> evaluate_for_openevolve(judge, "program.py").metrics          # doctest: +SKIP
    {'combined_score': 0.61, 'runs': 40.0, 'accepted': 1.0}
    """
    results = require("openevolve.evaluation_result", extra="openevolve")
    judgement = judge(Path(program_path).read_text("utf-8"))
    metrics = {
        "combined_score": judgement.fitness,
        "runs": float(judgement.cost.runs),
        "accepted": float(judgement.is_accepted),
    }
    return results.EvaluationResult(
        metrics=metrics, artifacts={"judgement": judgement.describe("long")}
    )


def evaluate_for_shinka(
    judge: JudgeFunction, program_path: str | PathLike[str], results_dir: str | PathLike[str]
) -> Judgement:
    r"""Judge a program, and write the two files that ShinkaEvolve expects of an evaluation.

    ``metrics.json`` has the fitness as ``combined_score`` and the judgement as ``text_feedback``,
    which ShinkaEvolve shows with ``EvolutionConfig(use_text_feedback=True)``. In ``correct.json`` a
    program is incorrect if it was removed, because its runs failed. ShinkaEvolve is not imported.

    >>> import json, tempfile
    >>> from polarbear import Verdict
    >>> def judge(candidate, *, label=""):
    ...     return Judgement(Verdict("c1", "member", 0.9), fitness=len(candidate) / 100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     program, results = Path(folder, "main.py"), Path(folder, "results")
    ...     _ = program.write_text("# EVOLVE-BLOCK-START\nsolve = 3\n# EVOLVE-BLOCK-END\n")
    ...     judgement = evaluate_for_shinka(judge, program, results)
    ...     metrics = json.loads((results / "metrics.json").read_text())
    ...     correct = json.loads((results / "correct.json").read_text())
    >>> metrics["combined_score"], correct
    (0.09, {'correct': True, 'error': None})
    """
    lines = Path(program_path).read_text("utf-8").splitlines()
    judgement = judge("\n".join(line for line in lines if "EVOLVE-BLOCK" not in line))
    is_correct = judgement.verdict.kind != "removed"
    files = {
        "metrics": {
            "combined_score": judgement.fitness,
            "public": {"verdict": judgement.verdict.kind, "fitness": round(judgement.fitness, 3)},
            "private": {"name": judgement.name, "runs": judgement.cost.runs},
            "text_feedback": judgement.describe("long"),
        },
        "correct": {"correct": is_correct, "error": None if is_correct else str(judgement)},
    }
    folder = Path(results_dir)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1), "utf-8")
    return judgement


def make_llamea_evaluator(judge: JudgeFunction) -> Callable[..., Any]:
    """Return the evaluation function of LLaMEA, which maximises fitness.

    Use it as ``LLaMEA(f, llm, evaluate_population=True)``: LLaMEA then calls it in its own process.
    It also evaluates single solutions. The long text of the judgement is the feedback in the next
    prompt about a solution.

    >>> from types import SimpleNamespace
    >>> from polarbear import Verdict
    >>> def judge(candidate, *, label=""):
    ...     return Judgement(Verdict("c1", "member", 0.9), fitness=0.7, label=label)
    >>> solution = SimpleNamespace(code="...", name="Walk", add_metadata=lambda *_: None)
    >>> solution.set_scores = lambda fitness, feedback: print(fitness, feedback.splitlines()[0])
    >>> evaluate = make_llamea_evaluator(judge)
    >>> _ = evaluate([solution], [])
    0.7 Verdict: a member of the Pareto set (90 % that it is a member).
    """

    def evaluate(solutions: Any, *rest: Any) -> Any:
        if not isinstance(solutions, list):
            return _score_solution(judge, solutions)
        for solution in solutions:
            _score_solution(judge, solution)
        return solutions, list(rest[0] or []) if rest else []

    return evaluate


def _score_solution(judge: JudgeFunction, solution: Any) -> Any:
    """Give a solution of LLaMEA or BLADE the judgement of its code, and return it."""
    if solution.code:  # else the answer of the model had none, which the framework has noted
        judgement = judge(solution.code, label=solution.name)
        solution.set_scores(judgement.fitness, judgement.describe("long"))
        solution.add_metadata("judgement", judgement.to_dict())
    return solution


def make_blade_problem(
    make_judge: Callable[[Path], JudgeFunction],
    task_prompt: str,
    *,
    name: str = "judge",
    **options: Any,
) -> Any:
    """Return a problem of BLADE (iohblade) whose solutions are evaluated by a judge.

    BLADE copies a problem for each method and seed, so ``make_judge`` makes a judge from the folder
    of such a run. Solutions are judged in the process of the method: the judge has processes of
    its own, and no virtual environment is made. ``options`` are those of BLADE's ``Problem``.

    >>> problem = make_blade_problem(make_judge, "Write a search.")             # doctest: +SKIP
    """
    base: Any = require("iohblade.problem", extra="blade").Problem

    class JudgedProblem(base):
        def __init__(self) -> None:
            super().__init__(name=name, **options)
            self.task_prompt, self.example_prompt, self.format_prompt = task_prompt, "", ""
            self.minimisation, self.dependencies = False, []

        def __call__(self, solution: Any, logger: Any = None) -> Any:
            """Evaluate a solution in this process, and write it to the log of the run."""
            if logger is not None:
                self.logger = logger
            if self.logger is not None and self.logger.budget_exhausted():
                solution.set_scores(-float("inf"), feedback="The budget is exhausted.")
                return solution
            solution = self.evaluate(solution)
            if self.logger is not None:
                self.logger.log_individual(solution)  # its lines are counted against the budget
            return solution

        def _ensure_env(self) -> None:
            """Make no virtual environment."""

        def evaluate(self, solution: Any) -> Any:
            return _score_solution(make_judge(Path(self.logger_dir or ".") / "judge"), solution)

        def test(self, solution: Any) -> Any:
            return self.evaluate(solution)

        def to_dict(self) -> dict[str, Any]:
            return {"name": self.name}

        def get_config(self) -> dict[str, Any]:
            config = {"name": self.name, "prompt": self.get_prompt(), "minimisation": False}
            return {**config, "tags": [], "evaluator": "polarbear", "config": {}}

    return JudgedProblem()
