"""arena-rank's job: 135,634 votes between 129 models, four covariates of style.

Run it from the project's folder: python benchmarks/arena.py [--quick]

Both sides start from the same columns, in the same process, each a few times in turns. arena-rank
gives maximum-likelihood ratings with sandwich intervals; ours is a posterior with intervals. Its
first call compiles; both the first and the last call are shown.
"""

import time

from measuring import Figures, apart, keep, load, make_parser, peak, table, versions

QUICK_CPU_SECONDS = 30
NEEDS = ("arena-rank",)

VOTES, FEW_VOTES, MODELS, COVARIATES, TURNS = 135_634, 10_000, 129, 4, 3


def compare(votes: int) -> Figures:
    """CPU seconds of each side: columns to intervals, in the first and in the last turn."""
    import numpy as np
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
    from arena_rank.utils.data_utils import ContextualPairDataset, PairDataset
    from simulated import rankings

    import polarbear as pb

    rng = np.random.default_rng(0)
    strength = rng.normal(0, 1, MODELS)
    a = rng.integers(MODELS, size=votes)
    b = (a + 1 + rng.integers(MODELS - 1, size=votes)) % MODELS
    style = rng.normal(size=(votes, COVARIATES))
    lead = strength[a] - strength[b] + style @ [0.4, 0.1, 0.0, -0.1]
    winner = np.where(rng.random(votes) < 1 / (1 + np.exp(-lead)), "model_a", "model_b")
    winner[rng.random(votes) < 0.1] = "tie"
    names = np.array([f"model {k}" for k in range(MODELS)])
    features = [f"style {k}" for k in range(COVARIATES)]
    votes_frame = pd.DataFrame({"model_a": names[a], "model_b": names[b], "winner": winner})
    votes_frame[features] = style
    pb.fit(rankings(3, 5, 1))  # what is loaded once is not counted

    def contextual():
        data = ContextualPairDataset.from_pandas(votes_frame, feature_cols=features)
        model = ContextualBradleyTerry(n_competitors=MODELS, n_features=COVARIATES)
        ratings = model.compute_ratings_and_cis(data)["ratings"].tolist()
        return dict(zip(data.competitors, ratings, strict=True))

    def plain():
        data = PairDataset.from_pandas(votes_frame)
        model = BradleyTerry(n_competitors=MODELS)
        ratings = model.compute_ratings_and_cis(data)["ratings"].tolist()
        return dict(zip(data.competitors, ratings, strict=True))

    def ours():
        columns = {name: votes_frame[name].tolist() for name in ("model_a", "model_b", "winner")}
        posterior = pb.fit(pb.readers.read_pairs(columns))
        posterior.to_frame()
        assert posterior.diagnostics.trusted
        ratings = posterior.utilities.mean(axis=(0, 1)).tolist()
        return dict(zip(posterior.algorithms, ratings, strict=True))

    found: Figures = {}
    for _ in range(TURNS):
        for side in (contextual, plain, ours):
            begin = time.process_time()
            ratings = side()
            spent = time.process_time() - begin
            found.setdefault(f"{side.__name__} first", spent)
            found[f"{side.__name__} last"] = spent
            order = [ratings[str(name)] for name in names]
            found[f"{side.__name__} truth"] = float(np.corrcoef(order, strength)[0, 1])
    return {**found, "memory": peak()}


def report(quick: bool) -> str:
    """The table of both sides."""
    votes = FEW_VOTES if quick else VOTES
    found = apart(compare, votes)
    sides = {
        "contextual": f"arena-rank, {COVARIATES} covariates",
        "plain": "arena-rank, no covariates",
        "ours": "PolarBear, no covariates",
    }
    columns = ("first", "last", "truth")
    rows = [
        (text, *(f"{found[f'{side} {name}']:.{4 if name == 'truth' else 2}f}" for name in columns))
        for side, text in sides.items()
    ]
    about = (
        f"{votes:,} votes between {MODELS} models, from columns of a data frame to ratings with "
        f"intervals, one thread ({', '.join(versions(['arena-rank', 'jax']))})."
    )
    head = ("", "CPU s, first call", "last call", "correlation with the truth")
    return f"{about}\n\n{table(head, rows)}"


def main() -> None:
    wanted = make_parser(__doc__).parse_args()
    before = load()
    text = report(wanted.quick)
    print(text)
    if not wanted.quick:
        keep("arena", "The job of arena-rank", before, text)


if __name__ == "__main__":
    main()
