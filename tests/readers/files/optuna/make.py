"""Make studies.db and studies.journal with an installed Optuna: python make.py FOLDER."""

import math
import sqlite3
import sys
from pathlib import Path

try:
    import optuna
except ImportError:  # pytest looks into every module
    optuna = None


def journal(path):
    try:
        from optuna.storages.journal import JournalFileBackend
    except ImportError:  # before 4.0
        from optuna.storages import JournalFileStorage as JournalFileBackend
    return optuna.storages.JournalStorage(JournalFileBackend(str(path)))


def loss(trial, bumps):
    x, y = trial.suggest_float("x", -5, 5), trial.suggest_float("y", -5, 5)
    trial.set_user_attr("test_loss", x * x + y * y + 0.5 * math.sin(9 * x))
    if trial.number == 3:
        raise RuntimeError
    for step in range(3):
        trial.report(x * x + y * y + 3.0 / (step + 1), step)
        if step == 1 and trial.should_prune():
            raise optuna.TrialPruned
    value = x * x + y * y + bumps * (2 - math.cos(3 * x) - math.cos(3 * y))
    return math.inf if trial.number == 5 else value


def make(storage):
    for name, sampler in (
        ("tpe", optuna.samplers.TPESampler),
        ("rs", optuna.samplers.RandomSampler),
    ):
        for task, bumps in (("sphere", 0.0), ("waves", 5.0)):
            for seed in (1, 2):
                study = optuna.create_study(
                    study_name=f"{name}-{task}-{seed}", storage=storage, sampler=sampler(seed=seed),
                    pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
                )  # fmt: skip
                study.set_user_attr("sampler", name)
                study.optimize(
                    lambda trial, b=bumps: loss(trial, b), n_trials=12, catch=(RuntimeError,)
                )
    study.ask()  # still running
    study.enqueue_trial({"x": 1.0, "y": 2.0})  # still waiting
    top = optuna.create_study(study_name="rs-top-1", storage=storage, direction="maximize",
                              sampler=optuna.samplers.RandomSampler(seed=1))  # fmt: skip
    top.optimize(lambda trial: -(trial.suggest_float("x", -5, 5) ** 2), n_trials=6)
    two = optuna.create_study(study_name="two-objectives", storage=storage,
                              directions=["minimize", "minimize"])  # fmt: skip
    two.optimize(lambda trial: (trial.suggest_float("x", 0, 1),) * 2, n_trials=2)
    gone = optuna.create_study(study_name="deleted", storage=storage)
    gone.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    optuna.delete_study(study_name="deleted", storage=storage)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    make(f"sqlite:///{folder / 'studies.db'}")
    connection = sqlite3.connect(folder / "studies.db")
    connection.executescript("PRAGMA page_size = 512; VACUUM")  # half the size
    connection.close()
    make(journal(folder / "studies.journal"))
