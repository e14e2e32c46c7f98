"""``assess``: ask the question of a race about data that are recorded already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from polarbear.data.instance_data import find_attribute
from polarbear.data.names import natural_sort_key, to_name
from polarbear.data.rankings import Rankings, rank
from polarbear.errors import DataError, warn
from polarbear.inference.e_values import Shares
from polarbear.inference.verdicts import Verdict, compare_readings
from polarbear.racing.budget import Budget
from polarbear.racing.events import Added, Started
from polarbear.racing.questions.pareto_set import check_question
from polarbear.racing.questions.question import Question, View
from polarbear.racing.state import OpenPairs, apply, start_state

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from polarbear.data.runs import Runs


def assess(
    data: Runs | Rankings,
    question: Question | None = None,
    *,
    times: ArrayLike | None = None,
) -> list[Verdict]:
    """Return the verdict about each algorithm by the question of a race, from recorded data.

    By default the question is :class:`ParetoSet`: an algorithm that you would miss is called
    replaceable with probability at most 1 - certainty. That holds for one look at data which are
    complete: to look again while runs are added, use a race. Instances are independent. No model of
    rankings is fitted; :class:`PaperParetoSet`, the method of the paper, fits one.

    Returns
    -------
    list[Verdict]
        One for each algorithm, in the order of their names.

    Raises
    ------
    DataError
        If the data are not runs or rankings, or the question is none of a race.

    Examples
    --------
    >>> import numpy as np, polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
    >>> for verdict in assess(pb.simulation.simulate_runs(truth, 200)):
    ...     print(verdict)
    a1 is worth running (> 99 %)
    a2 is worth running (> 99 %)
    a3 is replaceable by a1 (> 99 %)
    """
    question = check_question(question)
    options = question.model.rank_options()
    rankings = data if isinstance(data, Rankings) else rank(data, times, **options)
    if "ties" in options and rankings.ties != "partial":
        rankings = replace(rankings, ties=options["ties"])
    names, at = rankings.algorithms, tuple(rankings.times.tolist())
    if len(names) < 2:
        raise DataError(f"need at least 2 algorithms to compare, got {len(names)}")
    if (why := question.find_obstacle(names, ())) is not None:
        raise DataError(why)
    question = question.at(at, rankings.clock)
    view = _view_of(rankings, question)
    fits = question.posterior_for in ("choice", "decision")
    posterior = question.model.make_fit()(rankings, seed=0) if fits else None
    decision = question.decide(view, rankings, posterior)
    pairs = OpenPairs(decision.batch)
    pairs.decide(decision)
    rivals = pairs.rivals(names)
    verdicts = [
        one._replace(unsettled=pairs.find_unsettled(one.algorithm, rivals[one.algorithm], at))
        if one.kind == "undecided" and one.algorithm in rivals
        else one
        for one in decision.verdicts
    ]
    if rankings.if_cut is not None:
        others = assess(rankings.if_cut, question)
        warn(compare_readings(rankings.count_ends(), verdicts, others))
    return verdicts


def _view_of(rankings: Rankings, question: Question) -> View:
    """Return what a question may know of recorded data: a race that has used all of them."""
    state = start_state(
        Started(
            seed=0,
            times=tuple(rankings.times.tolist()),
            direction="minimize",
            clock=rankings.clock,
            endless=False,
            question=question,
            budget=Budget(),
            model=question.model,
        )
    )
    for name in rankings.algorithms:
        apply(state, Added(name))
    return replace(
        state.view(), error_shares=Shares(0.0, 1.0), n_used=len(rankings.instances), n_unused=0
    )


def assess_classes(
    data: Runs | Rankings,
    classes: str | Mapping[str, str],
    question: Question | None = None,
    *,
    times: ArrayLike | None = None,
) -> dict[str, list[Verdict]]:
    """Return the verdict about each algorithm in each class of instances.

    The guarantee of :func:`assess` holds in each class: an algorithm that you would miss there is
    called replaceable with probability at most 1 - certainty.

    Parameters
    ----------
    data, question, times
        As in :func:`assess`; for a race, ``race.runs`` and ``race.times``.
    classes
        The name of an attribute of the instances, or a mapping from instances to classes.
        Instances that are not named are left out.

    Returns
    -------
    dict[str, list[Verdict]]
        The verdicts of each class.

    Raises
    ------
    DataError
        If the instances have no such attribute.

    Examples
    --------
    >>> import numpy as np, polarbear as pb
    >>> utilities = np.repeat([[3.0, 0.0], [0.0, 3.0]], 40, axis=0)
    >>> noise = np.random.default_rng(1).gumbel(size=(80, 2))
    >>> rankings = pb.simulation.rank_costs(-(utilities + noise)[None])
    >>> kinds = {f"i{k + 1}": "easy" if k < 40 else "hard" for k in range(80)}
    >>> for name, verdicts in assess_classes(rankings, kinds).items():
    ...     print(name, *verdicts, sep=": ")
    easy: a1 is worth running (> 99 %): a2 is replaceable by a1 (> 99 %)
    hard: a1 is replaceable by a2 (> 99 %): a2 is worth running (> 99 %)
    """
    options = check_question(question).model.rank_options()
    rankings = data if isinstance(data, Rankings) else rank(data, times, **options)
    if isinstance(classes, str):
        values = find_attribute(rankings.instance_data, classes).tolist()
        classes = dict(zip(rankings.instances, values, strict=True))
    classes = {to_name(instance): to_name(own) for instance, own in classes.items()}
    named = {classes[k] for k in rankings.instances if k in classes} - {""}  # "" is a missing value
    names = sorted(named, key=natural_sort_key)
    rows = {
        name: [k for k, one in enumerate(rankings.instances) if classes.get(one) == name]
        for name in names
    }
    return {name: assess(rankings.take(own), question) for name, own in rows.items()}
