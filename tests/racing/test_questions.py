"""A question of one's own: raced, stored, resumed and reported."""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import pytest

import polarbear as pb
from polarbear.racing.decisions import Decision, Open, pair
from polarbear.racing.events import from_json, to_json
from polarbear.racing.questions.stored import (
    BY_NAME,
    UnknownQuestion,
    question_from_plain,
    question_to_plain,
)


@dataclass(frozen=True)
class LeaderAt(pb.Question):
    """Which algorithm is the best at one time? Settled when P(best) reaches the certainty."""

    time: float

    posterior_for: ClassVar = "decision"

    def asked_times(self, n_times):
        return 1 << (n_times - 1)

    def decide(self, view, rankings, posterior):  # noqa: ARG002
        if posterior is None:
            return view.unchanged()
        best = posterior.prob_best()[view.times.index(self.time)]
        leader = posterior.algorithms[int(np.argmax(best))]
        rivals = () if best.max() >= self.certainty else set(view.members) - {leader}
        bits = self.asked_times(len(view.times))
        pairs = {pair(leader, rival): bits for rival in rivals}
        return Decision(Open.list_all(pairs, {}), view.budget.batch[0], chosen=(leader,))

    def describe(self):
        return f"the best at {self.time:g} is another one with posterior probability 0.05"


def solvers():
    def make(skill):
        def solve(job):
            yield 10, job.rng.random() + skill

        return solve

    return {"good": make(0.0), "fair": make(0.1), "bad": make(0.4)}


def race(path, budget=None):
    return pb.race(
        solvers(),
        range(400),
        [5, 10],
        direction="minimize",
        question=LeaderAt(10.0, certainty=0.995),
        budget=budget,
        store=path,
        executor=1,
        seed=3,
    )


@pytest.mark.slow
def test_a_question_of_ones_own_is_raced_stored_resumed_and_reported(tmp_path):
    with race(tmp_path / "whole.db") as whole:
        assert (whole.status.chosen, whole.ended) == (("good",), "resolved")
        decided = whole.status
    with race(tmp_path / "parts.db", pb.Budget(runs=24)) as part:
        assert part.ended == "budget of runs spent"
    with race(tmp_path / "parts.db") as resumed:
        assert resumed.question == LeaderAt(10.0, certainty=0.995)
        assert (resumed.status.chosen, resumed.status.n_runs) == (
            whole.status.chosen,
            decided.n_runs,
        )
        events = resumed.events
        assert sum(type(event).__name__ == "Extended" for event in events) == 1  # of the budget
        path = pb.report(resumed, tmp_path / "report.html")
    assert "he best at 10 is another one" in path.read_text()
    with pb.open_store(tmp_path / "parts.db", read_only=True) as store:
        assert "the best at 10 is another one" in str(store.status())
    unknown = pb.Race.from_events(from_json(to_json(event)) for event in events)
    assert isinstance(unknown.question, UnknownQuestion)
    assert unknown.status.chosen == ("good",)
    with pytest.raises(pb.DataError, match=r"a question of your own.*pass it again with question="):
        unknown.question.decide(unknown.state.view(), None, None)


@pytest.mark.parametrize("kind", [pb.ParetoSet, pb.PaperParetoSet, pb.NoWorse, pb.Choice])
def test_questions_come_back_from_their_plain_form(kind):
    first = {pb.NoWorse: ("old",), pb.Choice: (pb.preferences.at(2),)}.get(kind, ())
    margin = {"margin" if kind in (pb.ParetoSet, pb.NoWorse) else "epsilon": 0.2}
    question = kind(*first, certainty=0.9, **margin).at((1.0, 2.0), "seconds")
    assert question_from_plain(question_to_plain(question)) == question
    assert BY_NAME[kind.__name__] is kind
    assert len(fields(kind)) <= 1 + 6  # the model, and few others
    with pytest.raises(pb.DataError, match="certainty=0.3: expected a probability above 0.5"):
        kind(*first, certainty=0.3)


def test_what_is_no_question_is_refused():
    for wrong, message in ((pb.ParetoSet, "is a class: write"), (0.9, "expected a question such")):
        with pytest.raises(pb.DataError, match=message):
            pb.Race(["a", "b"], [1], direction="minimize", question=wrong)
    with pytest.raises(pb.DataError, match="expected Budget"):
        pb.Race(["a", "b"], [1], direction="minimize", budget=100)
