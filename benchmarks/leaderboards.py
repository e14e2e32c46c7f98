"""Leaderboards: millions of votes between models, and up to a thousand algorithms at many times.

Run it from the project's folder: python benchmarks/leaderboards.py [--quick]

Votes are beside evalica's Bradley-Terry, on the same lists of names and in the same process.
"""

import tempfile
import time
from typing import Any

from measuring import Figures, apart, gigabytes, keep, load, make_parser, peak, table
from simulated import meetings, rankings

import polarbear as pb

QUICK_CPU_SECONDS = 7
NEEDS = ("evalica",)

PAIRS, MODELS = (100_000, 1_000_000, 10_000_000), 129
FIELDS = ((100, 100, 300, 20), (300, 20, 6_000, 20), (1_000, 20, 20_000, 30))
"""Algorithms, how many of them are compared on an instance, instances, times."""

ABOUT = (
    "Evalica's Bradley-Terry gives a point, ours a posterior with intervals; both start from lists "
    "of names, in one process. A tenth of the votes are ties: evalica takes one as half a win of "
    "each, we learn nothing from it about the order."
)


def pairs(number: int) -> Figures:
    """CPU seconds for votes between models: evalica's point, our posterior, and from Parquet."""
    import evalica
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    strength = rng.normal(0, 1, MODELS)
    a = rng.integers(MODELS, size=number)
    b = (a + 1 + rng.integers(MODELS - 1, size=number)) % MODELS
    won = np.where(rng.random(number) < 1 / (1 + np.exp(strength[b] - strength[a])), 0, 1)
    won[rng.random(number) < 0.1] = 2
    names = np.array([f"model {k}" for k in range(MODELS)], dtype=object)
    xs, ys = names[a].tolist(), names[b].tolist()
    texts = np.array(["model_a", "model_b", "tie"], dtype=object)[won].tolist()
    kinds = [evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw]
    winners = [kinds[code] for code in won.tolist()]
    columns = {"model_a": xs, "model_b": ys, "winner": texts}
    pb.readers.read_pairs({name: values[:500] for name, values in columns.items()})
    pb.fit(rankings(3, 5, 1))  # what is loaded once is not counted
    spent = []

    def timed(call):
        begin = time.process_time()
        found = call()
        spent.append(time.process_time() - begin)
        return found

    point: Any = timed(lambda: evalica.bradley_terry(xs, ys, winners)).scores
    votes = timed(lambda: pb.readers.read_pairs(columns))
    posterior = timed(lambda: pb.fit(votes))
    table = timed(posterior.to_frame)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/votes.parquet"
        pq.write_table(pa.table(columns), path)
        timed(lambda: pb.readers.read_pairs(path))
    order = np.log(point[list(posterior.algorithms)].to_numpy())
    ours = posterior.utilities.mean(axis=(0, 1))
    assert len(table["mean"]) == MODELS
    return {
        **dict(zip(("evalica", "read", "fit", "table", "parquet"), spent, strict=True)),
        "correlation": float(np.corrcoef(order, ours)[0, 1]),
        "memory": peak(),
    }


def field(n: int, each: int, number: int, times: int) -> Figures:
    """CPU seconds of the posterior of n algorithms of which some meet, and of its Pareto set."""
    data = rankings(n, number, times) if each == n else meetings(n, each, number, times)
    pb.fit(rankings(3, 5, 2))
    begin = time.process_time()
    posterior = pb.fit(data)
    fitted = time.process_time()
    members = posterior.pareto()
    return {
        "fit": fitted - begin,
        "pareto": time.process_time() - fitted,
        "members": len(members),
        "trusted": posterior.diagnostics.trusted,
        "memory": peak(),
    }


def report(quick: bool) -> str:
    """Votes between models beside evalica, and many algorithms at several times, as tables."""
    few = slice(0, 1 if quick else None)
    votes = [
        (
            f"{number:,}",
            f"{found['evalica']:.2f}",
            f"{ours:.2f}",
            f"**{ours / found['evalica']:.2f}**",
            *(f"{found[name]:.2f}" for name in ("read", "fit", "table", "parquet")),
            f"{found['correlation']:.4f}",
            gigabytes(found),
        )
        for number in PAIRS[few]
        if (found := apart(pairs, number))
        and (ours := found["read"] + found["fit"] + found["table"])
    ]
    head = ("pairs", "evalica", "ours", "ratio", "names to rankings", "fit", "intervals")
    fields = [
        (
            f"{n:,}",
            str(each),
            f"{number:,}",
            str(times),
            f"{found['fit']:.1f}",
            f"{found['pareto']:.1f}",
            str(found["members"]),
            "yes" if found["trusted"] else "no",
            gigabytes(found),
        )
        for n, each, number, times in FIELDS[few]
        if (found := apart(field, n, each, number, times))
    ]
    sizes = ("n", "each instance", "P", "T", "CPU s: fit", "Pareto set", "members", "trusted", "GB")
    return "\n\n".join(
        [
            f"## Votes between {MODELS} models, CPU seconds",
            table((*head, "Parquet to rankings", "correlation with evalica", "GB"), votes),
            ABOUT,
            "## Many algorithms at several times",
            table(sizes, fields),
        ]
    )


def main() -> None:
    wanted = make_parser(__doc__).parse_args()
    before = load()
    text = report(wanted.quick)
    print(text)
    if not wanted.quick:
        keep("leaderboards", "Leaderboards", before, text)


if __name__ == "__main__":
    main()
