"""Make mlflow.db and mlruns with an installed MLflow: python make.py sqlite:///mlflow.db FOLDER.

``strip_database`` then takes out what holds paths of this machine, and tables that are not read.
"""

import logging
import math
import os
import random
import sqlite3
import sys
import warnings

TABLES = ("experiments", "runs", "metrics", "params", "tags", "alembic_version")


def log_runs(address):
    import mlflow

    mlflow.set_tracking_uri(address)
    rng = random.Random(1)
    for task in ("digits", "wine"):
        mlflow.set_experiment(task)
        for model in ("mlp", "tree"):
            for seed in (1, 2):
                with mlflow.start_run(run_name=f"{model}-{seed}"):
                    mlflow.log_params({"model": model, "seed": seed})
                    mlflow.set_tag("dataset", task)
                    loss = 2.0
                    for epoch in range(6):
                        loss *= rng.uniform(0.7, 1.1)
                        diverged = epoch == 0 and seed == 2
                        mlflow.log_metric("val_loss", math.nan if diverged else loss, step=epoch)
                        mlflow.log_metric("test_loss", 1.1 * loss + rng.uniform(0, 0.2), step=epoch)
    try:
        with mlflow.start_run(run_name="mlp-3"):
            mlflow.log_params({"model": "mlp", "seed": 3})
            mlflow.log_metric("val_loss", math.inf, step=0)
            mlflow.log_metric("val_loss", 2.5, step=1)
            raise RuntimeError
    except RuntimeError:
        pass


def strip_database(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    for name, kind in connection.execute("SELECT name, type FROM sqlite_master").fetchall():
        if kind == "table" and name not in TABLES and not name.startswith("sqlite_"):
            connection.execute(f'DROP TABLE "{name}"')
    connection.execute("UPDATE runs SET user_id = '', artifact_uri = ''")
    connection.execute("UPDATE experiments SET artifact_location = ''")
    connection.execute("DELETE FROM tags WHERE key LIKE 'mlflow.%' AND key != 'mlflow.runName'")
    connection.commit()
    connection.executescript("PRAGMA page_size = 512; VACUUM")
    connection.close()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    for where in sys.argv[1:]:
        log_runs(where)
        if where.startswith("sqlite:///"):
            strip_database(where.removeprefix("sqlite:///"))
