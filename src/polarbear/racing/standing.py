"""A race in words: the status of each algorithm, lines of text, and a card for notebooks."""

from collections.abc import Iterable
from math import inf

from polarbear._text import format_count, format_list, render_card
from polarbear.data.names import natural_sort_key
from polarbear.inference.algorithm_status import AlgorithmStatus, describe_shortage
from polarbear.racing.state import Spent, State, pair


def status_of(state: State, name: str) -> AlgorithmStatus:
    """Return the status of an algorithm at the last decision of a race."""
    if name in state.removed:
        return AlgorithmStatus(name, "removed", why=state.removed[name])
    if name in state.eliminated:
        _, rival, probability, decisive = state.eliminated[name]
        status = AlgorithmStatus(name, "dominated", rival=rival, prob_dominated=probability)
        return status._replace(decisive=decisive)
    assessed, rivals = state.assessed.get(name), state.rivals().get(name, {})
    if assessed is None:
        alone = not rivals and len(state.racing) == 1
        status = AlgorithmStatus(name, "member" if alone else "undecided", clock=state.clock)
    else:
        _, kind, prob_in_pareto, rival, since, until = assessed
        when = {"since": since, "until": until, "clock": state.clock}
        epsilon = state.rules.epsilon if kind == "equivalent" else None
        status = AlgorithmStatus(name, kind, prob_in_pareto, rival, epsilon=epsilon, **when)
    return _with_forecast(state, status, rivals) if rivals else status


def statuses_of(state: State) -> list[AlgorithmStatus]:
    """Return the status of every algorithm: candidates, then eliminated, then removed ones."""
    removed = sorted(state.removed, key=natural_sort_key)
    return [status_of(state, name) for name in (*state.present(), *state.eliminated, *removed)]


def _with_forecast(
    state: State, status: AlgorithmStatus, rivals: dict[str, int]
) -> AlgorithmStatus:
    """Add the rivals with which a pair is open, and what it would take to settle them."""
    last = {
        rival: state.times[rivals[rival].bit_length() - 1]
        for rival in sorted(rivals, key=natural_sort_key)
    }
    status = status._replace(open=last, left=state.left)
    limit, spent = state.limits.get(status.algorithm), state.spent_on.get(status.algorithm)
    if (
        limit is not None
        and spent is not None
        and not limit.allows(Spent(spent.runs + 1, spent.time))
    ):
        status = status._replace(why="its limit of runs is reached")
    needs = [state.need.get(pair(status.algorithm, rival), inf) for rival in last]
    instances = max(needs, default=inf)
    if instances == inf:
        return status
    # It runs as long as any rival needs it, and each rival as long as that pair does.
    time = instances * max(last.values())
    time += sum(need * until for need, until in zip(needs, last.values(), strict=True))
    return status._replace(instances=instances, time=time)


def described(state: State) -> str:
    """A race in some lines."""
    n = state.n_algorithms
    race = "" if n == len(state.racing) else f"{len(state.racing):,} of {n:,} still race, "
    stands = "resolved" if state.resolved else f"{race}{format_count(len(state.open), 'pair')} open"
    left = to_go(state)
    answer = f"  eliminated  {format_list(list(state.eliminated))}\n"
    if state.chosen:  # for a known budget: no algorithm is eliminated
        answer = f"  chosen      {format_list(list(state.chosen))}\n"
    return (
        f"race of {format_count(n, 'algorithm')} after {format_count(state.round, 'round')}, "
        f"{stands}\n  racing      {format_list(state.present())}\n"
        f"{answer}"
        f"  error       {state.rules.error_bound}\n"
        f"  spent       {state.describe_spent()}" + (f"\n  to go       {left}" if left else "")
    )


def to_go(state: State) -> str:
    """How much is left of a race, and whether there are instances enough; "" if it is not known."""
    if not state.open or state.outlook is None:
        return ""
    return f"{state.outlook}{describe_shortage(max(1.0, state.outlook.instances[1]), state.left)}"


def as_card(text: str, statuses: Iterable[AlgorithmStatus]) -> str:
    """What a notebook shows of a race."""
    rows = [[one.algorithm, one.status, f"{one}."] for one in statuses]
    return render_card(text, ["algorithm", "status", "verdict"], rows)
