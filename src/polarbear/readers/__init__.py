from polarbear.data.runs import Runs


def read(path, **k):
    return Runs.from_parquet(path, **k)
