"""What a posterior says of pairs of algorithms: a table of relations, and changes of the lead."""

from typing import Any, NamedTuple

import numpy as np

from polarbear.data.names import find_indices
from polarbear.inference.dominance import check_certainty, find_lead_changes
from polarbear.inference.posterior import Posterior


class Crossing(NamedTuple):
    """A change of the lead: one algorithm leads up to a time, the other from a later time on."""

    first: str
    then: str
    until: float
    since: float
    probability: float  # of both leads


def find_crossings(posterior: Posterior, a: str, b: str, certainty: float = 0.95) -> list[Crossing]:
    """Return where the lead between two algorithms changes with the given certainty.

    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.array([[2.0, 0.0], [0.0, 2.0]]), 200))
    >>> [(one.first, one.then) for one in find_crossings(posterior, "a1", "a2")]
    [('a1', 'a2')]
    """
    check_certainty(certainty)
    first, second = find_indices([a, b], posterior.algorithms, "algorithm")
    ahead, times = posterior.prob_better(a, b), posterior.times
    lead = posterior.utilities[..., first] - posterior.utilities[..., second]
    changes = find_lead_changes(ahead, lead, certainty, product=posterior.independent)
    return [
        Crossing(
            first=(a, b)[up],
            then=(b, a)[up],
            until=float(times[s]),
            since=float(times[t]),
            probability=sure,
        )
        for s, t, up, sure in changes
    ]


def tabulate_pairs(
    posterior: Posterior, certainty: float = 0.95, epsilon: float = 0.05
) -> dict[str, list[Any]]:
    """Return a table with a row for each pair of algorithms, and their relation if certain.

    Columns: first, second, relation ("dominates", "is dominated by", "crosses", "equals",
    "undecided"), everywhere and everywhere_reversed (P(ahead at all times)), least and most
    (P(first ahead) over time), equal (the smallest P(equivalent) over time), and error,
    the Monte Carlo standard error of everywhere.

    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.array([[2.0, 0.0], [0.0, 2.0]]), 200))
    >>> tabulate_pairs(posterior)["relation"]
    ['crosses']
    """
    check_certainty(certainty)
    ahead, alike = posterior.prob_better(), posterior.prob_equivalent(epsilon=epsilon)
    names, everywhere = posterior.algorithms, posterior.prob_dominates()
    row, column = np.triu_indices(len(names), 1)
    dominates, leads = everywhere >= certainty, np.any(ahead >= certainty, axis=0)
    crossing = leads & leads.T
    equal = np.all(alike >= certainty, axis=0)
    relation = np.full(len(row), "undecided", dtype=object)
    relation[crossing[row, column]] = "crosses"
    relation[equal[row, column]] = "equals"
    relation[dominates[row, column]] = "dominates"
    relation[dominates[column, row]] = "is dominated by"
    forward, backward = everywhere[row, column], everywhere[column, row]
    return {
        "first": [names[k] for k in row.tolist()],
        "second": [names[k] for k in column.tolist()],
        "relation": relation.tolist(),
        "everywhere": forward.tolist(),
        "everywhere_reversed": backward.tolist(),
        "least": ahead[:, row, column].min(axis=0).tolist(),
        "most": ahead[:, row, column].max(axis=0).tolist(),
        "equal": alike[:, row, column].min(axis=0).tolist(),
        "error": np.sqrt(forward * (1 - forward) / len(posterior.utilities)).tolist(),
    }
