"""The judge of a design loop: one race which every candidate joins, and what frameworks call.

May import coordinator and what it may import; nothing but the public names imports it.
"""

from polarbear.design.candidates import load_code
from polarbear.design.frameworks import (
    GepaAcceptance,
    GepaAdapter,
    evaluate_for_openevolve,
    evaluate_for_shinka,
    judge_proposals,
    make_blade_problem,
    make_llamea_evaluator,
    make_optuna_objective,
)
from polarbear.design.judge import Judge
from polarbear.design.judgement import Judgement

__all__ = [
    "GepaAcceptance",
    "GepaAdapter",
    "Judge",
    "Judgement",
    "evaluate_for_openevolve",
    "evaluate_for_shinka",
    "judge_proposals",
    "load_code",
    "make_blade_problem",
    "make_llamea_evaluator",
    "make_optuna_objective",
]
