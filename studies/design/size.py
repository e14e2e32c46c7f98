"""How large a loop is, and the fixed evaluator that it is compared with."""

from typing import NamedTuple


class Size(NamedTuple):
    """How large a loop is; the fixed evaluator makes ``instances`` runs for each candidate."""

    candidates: int = 200
    instances: int = 216
    dimension: int = 5
    evaluations: int = 10_000
    times: int = 20


QUICK = Size(candidates=4, instances=16, dimension=2, evaluations=200, times=4)
