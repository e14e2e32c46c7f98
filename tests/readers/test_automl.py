"""Trials of Optuna, SMAC, Syne Tune, CARP-S and MLflow, compared with what the programs report."""

import gzip
import json
import shutil
import sqlite3
import sys
import warnings
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polarbear import DataError, Status, read
from polarbear.errors import DataWarning
from polarbear.readers import FORMATS

FILES = Path(__file__).parent / "files"
NAMES = "{algorithm}-{instance}-{repetition}"
STORAGES = sorted((FILES / "optuna").glob("*.gz"))
THE_DATA = pytest.mark.filterwarnings("ignore::polarbear.errors.DataWarning")


def trace(trials, clock, pruned=False):
    """Best values at the ends of Optuna's own trials, written down a second time."""
    ended = sorted((t for t in trials if t.state.is_finished()), key=lambda t: t.datetime_complete)
    start = min(t.datetime_start for t in trials if t.datetime_start)
    time, best = [], []
    for number, trial in enumerate(ended, start=1):
        counts = trial.state.name == "COMPLETE" or (pruned and trial.state.name == "PRUNED")
        value = trial.value if counts and trial.value is not None else np.inf
        if value < min(best, default=np.inf):
            seconds = (trial.datetime_complete - start).total_seconds()
            time.append(number if clock == "evaluations" else seconds)
            best.append(value)
    return time, best


def assert_as_optuna_reports(runs, storage, clock, *, pruned=False):
    optuna = pytest.importorskip("optuna")
    assert len(runs) == 8
    for run in runs:
        name = f"{run.algorithm}-{run.instance}-{run.repetition}"
        study = optuna.load_study(study_name=name, storage=storage)
        time, value = trace(study.trials, clock, pruned)
        assert_allclose(run.time, time, atol=1e-5)
        assert run.value.tolist() == value
        if clock == "evaluations":
            assert run.until == sum(trial.state.is_finished() for trial in study.trials)


@pytest.fixture
def optuna_storage(tmp_path):
    """Open a stored file with Optuna itself, which may upgrade or lock it: a copy."""
    optuna = pytest.importorskip("optuna")

    def opened(path):
        copy = tmp_path / path.stem
        copy.write_bytes(gzip.decompress(path.read_bytes()))
        if copy.suffix == ".db":
            return copy, f"sqlite:///{copy}"
        from optuna.storages.journal import JournalFileBackend

        return copy, optuna.storages.JournalStorage(JournalFileBackend(str(copy)))

    return opened


@THE_DATA
class TestOptuna:
    @pytest.mark.parametrize("clock", ["evaluations", "seconds"])
    @pytest.mark.parametrize("path", STORAGES, ids=lambda path: path.stem)
    def test_stored_files_are_read_as_optuna_reads_them(self, path, clock, optuna_storage):
        copy, storage = optuna_storage(path)
        runs = read(path, names=NAMES, direction="minimize", clock=clock)
        assert_as_optuna_reports(runs, storage, clock)
        assert read(copy, names=NAMES, direction="minimize", clock=clock) == runs

    def test_pruned_trials_count_if_asked(self, optuna_storage):
        copy, storage = optuna_storage(STORAGES[-1])
        runs = read(copy, names=NAMES, direction="minimize", partial=True)
        assert_as_optuna_reports(runs, storage, "evaluations", pruned=True)
        assert runs != read(copy, names=NAMES, direction="minimize")

    def test_a_live_study_a_list_and_a_url(self, tmp_path):
        optuna = pytest.importorskip("optuna")
        optuna.logging.set_verbosity(optuna.logging.CRITICAL)
        url = f"sqlite:///{tmp_path / 'live.db'}"
        studies = []
        for name in ("rs", "qmc"):
            sampler = optuna.samplers.RandomSampler(seed=len(name))
            study = optuna.create_study(
                study_name=f"{name}__line__1", storage=url, sampler=sampler, direction="maximize"
            )
            study.optimize(lambda trial: -abs(trial.suggest_float("x", -1, 1)), n_trials=5)
            studies.append(study)
        runs = read(studies)
        assert runs.algorithms == ("qmc", "rs")
        assert runs.direction == "maximize"
        for run, study in zip(runs, reversed(studies), strict=True):
            best = np.maximum.accumulate([trial.value for trial in study.trials])
            assert runs.filter(algorithms=[run.algorithm]).at(np.arange(1, 6))[0].tolist() == list(
                best
            )
        assert read(url) == read(tmp_path / "live.db") == read(tuple(studies)) == runs
        assert read(studies[0]) == runs.filter(algorithms=["rs"])
        with pytest.raises(DataError, match="a study of Optuna takes no option 'pattern'"):
            read(studies, pattern="x")
        with pytest.raises(DataError, match="format='csv' is for files"):
            read(studies, format="csv")

    def test_names_are_proposed_and_may_be_attributes(self):
        pytest.importorskip("optuna")
        path = STORAGES[0]
        with pytest.raises(
            DataError, match=r"pass names='\{algorithm\}-\{instance\}-\{repetition\}'"
        ):
            read(path, direction="minimize")
        with pytest.raises(DataError, match="nothing fits names='x{algorithm}': the first is 'tpe"):
            read(path, direction="minimize", names="x{algorithm}")
        with pytest.raises(DataError, match="does not tell instance; add instance to names="):
            read(
                path,
                direction="minimize",
                names="{sampler_and_task}-{repetition}",
                algorithm="sampler",
            )
        by_attribute = read(
            path,
            direction="minimize",
            names="*-{task}-{seed}",
            algorithm="sampler",
            instance="task",
        )
        assert by_attribute == read(path, direction="minimize", names=NAMES)
        two = read(
            path, direction="minimize", names="{a}-{b}-{seed}", algorithm="a", instance=("a", "b")
        )
        assert "a=rs, b=sphere" in two.instances

    def test_other_directions_and_several_objectives(self):
        pytest.importorskip("optuna")
        path = STORAGES[0]
        with pytest.raises(DataError, match="some experiments minimise and some maximise"):
            read(path, names=NAMES)
        with pytest.warns(DataWarning, match="1 study left out, .*several objectives: two-obj"):
            assert read(path, names=NAMES, direction="maximize").instances == ("top",)

    def test_the_final_choice_judged_by_another_value(self, optuna_storage):
        copy, storage = optuna_storage(STORAGES[0])
        optuna = pytest.importorskip("optuna")
        options = {"names": NAMES, "direction": "minimize", "value": "test_loss"}
        runs = read(copy, curve="final", chosen_by="objective", **options)
        for run in runs:
            name = f"{run.algorithm}-{run.instance}-{run.repetition}"
            study = optuna.load_study(study_name=name, storage=storage)
            assert run.value.tolist() == [study.best_trial.user_attrs["test_loss"]]
            assert run.time.tolist() == [run.until]
        with pytest.raises(DataError, match="chosen so far, which may get worse. or 'final'"):
            read(copy, chosen_by="objective", **options)
        with pytest.raises(DataError, match="no trial has a user attribute 'tset'; there are obj"):
            read(copy, **{**options, "value": "tset"})
        with pytest.raises(DataError, match="curve='mean': expected one of best, last, chosen"):
            read(copy, curve="mean", **options)
        with pytest.raises(DataError, match="clock='days': expected 'evaluations' or 'seconds'"):
            read(copy, clock="days", **options)

    def test_other_schemas_are_refused(self, optuna_storage):
        copy, _ = optuna_storage(STORAGES[0])
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = 'v99.0.0'")
        with pytest.raises(DataError, match="db: Optuna cannot read it: "):
            read(copy, names=NAMES)

    def test_files_need_optuna(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "optuna", None)
        wanted = r"Optuna is needed to read it: .*pip install 'polarbear-race\[optuna\]'"
        for path in STORAGES[:2]:
            with pytest.raises(ImportError, match=wanted):
                read(path, names=NAMES)

    def test_a_database_that_is_a_trap(self, tmp_path):
        with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
            connection.executescript(
                "CREATE TABLE trials (x); CREATE VIEW studies AS WITH RECURSIVE r(study_id) AS "
                "(SELECT 1 UNION ALL SELECT study_id + 1 FROM r) SELECT study_id FROM r"
            )
        with pytest.raises(DataError, match="no file is a SQLite storage"):
            read(tmp_path / "x.db", format="optuna")

    def test_half_a_line_at_the_end_of_a_journal(self, tmp_path):
        pytest.importorskip("optuna")
        lines = gzip.decompress(STORAGES[1].read_bytes()).split(b"\n")
        (tmp_path / "a.log").write_bytes(b"\n".join([*lines[:-1], lines[-2][:30]]))
        options = {"names": NAMES, "direction": "minimize"}
        assert read(tmp_path / "a.log", **options) == read(STORAGES[1], **options)
        (tmp_path / "a.log").write_bytes(b"\n".join([lines[0], lines[1][:30], *lines[2:]]))
        with pytest.raises(DataError, match="a.log: Optuna cannot read it: JSONDecodeError"):
            read(tmp_path / "a.log", **options)

    def test_urls_of_other_databases(self, monkeypatch):
        pytest.importorskip("optuna")
        hidden = r"^mysql://ann:\*\*\*@nowhere/x: Optuna cannot read it"
        with pytest.raises(DataError, match=hidden):
            read("mysql://ann:secret@nowhere/x")
        monkeypatch.setitem(sys.modules, "optuna", None)
        with pytest.raises(ImportError, match="'optuna' is not installed: pip install 'polarb"):
            read("postgresql://ann@nowhere/x")

    @pytest.mark.slow
    def test_a_real_database_elsewhere_is_read_and_not_written_to(self, server):
        optuna = pytest.importorskip("optuna")
        optuna.logging.set_verbosity(optuna.logging.CRITICAL)
        url = server.url.replace("postgresql://", "postgresql+psycopg://")
        with pytest.raises(DataError, match="Optuna cannot read it"):  # no tables are made
            read(url)
        storage = optuna.storages.RDBStorage(url)
        study = optuna.create_study(study_name="rs__line__1", storage=storage)
        study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=4)
        runs = read(url)
        assert runs == read(study)
        assert runs.value.min() == study.best_value
        storage.remove_session()
        storage.engine.dispose()

    def test_import_polarbear_does_not_import_optuna(self):
        import subprocess

        code = "import polarbear as pb, sys; pb.example(); print('optuna' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "False\n"


class TestSmac:
    def test_costs_of_the_highest_budget(self):
        runs = read(FILES / "smac" / "smac_2.4.1", names="{algorithm}-{instance}")
        assert runs.algorithms == ("hpo", "mf", "random")
        assert set(runs.repetition) == {1}
        for run in runs:
            folder = FILES / "smac" / "smac_2.4.1" / f"{run.algorithm}-sphere" / "1"
            rows = json.loads((folder / "runhistory.json").read_text())["data"]
            budget = 9.0 if run.algorithm == "mf" else None
            costs = [
                row["cost"] if row["status"] == 1 and row["budget"] == budget else np.inf
                for row in rows
            ]
            assert run.until == len(rows)
            shown = runs.at(range(1, 13))[_index(runs, run)]
            assert shown.tolist() == (np.minimum.accumulate(costs)[:12].tolist())

    def test_lower_budgets_and_seconds_if_asked(self):
        folder = FILES / "smac" / "smac_2.4.1" / "mf-sphere"
        assert read(folder, partial=True).value[-1] < 2
        assert len(read(folder, partial=True).time) > len(read(folder).time)
        rows = json.loads((folder / "1" / "runhistory.json").read_text())["data"]
        assert read(folder, clock="seconds").until[0] == pytest.approx(
            rows[-1]["endtime"] - rows[0]["starttime"]
        )

    def test_lists_of_version_2_0(self):
        runs = read(FILES / "smac" / "smac_2.0.2")
        assert runs[0][:2] == ("random", "sphere")
        assert runs.until.tolist() == [12]
        assert runs.value.tolist() == [0.0]
        judged = read(
            FILES / "smac" / "smac_2.0.2", value="test_loss", chosen_by="cost", curve="final"
        )
        assert judged.value.tolist() == [0.5]

    def test_facade_and_scenario_name_a_run_else(self):
        runs = read(FILES / "smac" / "crashed_run")
        assert runs[0][:2] == ("HyperparameterOptimizationFacade", "hpo-sphere")

    def test_several_objectives_and_instances(self, tmp_path):
        folder = tmp_path / "1"
        shutil.copytree(FILES / "smac" / "smac_2.0.2" / "random__sphere" / "1", folder)
        history = json.loads((folder / "runhistory.json").read_text())
        history["data"][3][4] = [1.0, 2.0]
        (folder / "runhistory.json").write_text(json.dumps(history))
        with pytest.raises(DataError, match="1/runhistory.json: has several objectives"):
            read(tmp_path)
        history["data"][3][4:5], history["data"][3][1] = [1.0], "i7"
        (folder / "runhistory.json").write_text(json.dumps(history))
        with pytest.raises(DataError, match="its trials are on several instances"):
            read(tmp_path)


def _index(runs, run):
    names = [(r.algorithm, r.instance, r.repetition) for r in runs]
    return names.index((run.algorithm, run.instance, run.repetition))


class TestSyneTune:
    FOLDER = FILES / "syne_tune" / "syne_tune_0.16.0"

    def rows(self, name):
        (packed,) = self.FOLDER.glob(f"{name}-*/results.csv.zip")
        with zipfile.ZipFile(packed) as archive:
            head, *rows = archive.read("results.csv").decode().split()
        return [dict(zip(head.split(","), row.split(","), strict=True)) for row in rows]

    @pytest.mark.parametrize("curve", ["best", "last"])
    def test_reports_of_trials(self, curve):
        runs = read(self.FOLDER, curve=curve)
        assert runs.algorithms == ("asha", "rs")
        assert runs.instances == ("sphere",)
        assert runs.repetition.tolist() == [1, 1]
        for run in runs:
            rows, best = self.rows(run.algorithm), np.inf
            time, value = [], []
            for i, row in enumerate(rows):
                is_last = row["trial_id"] not in {later["trial_id"] for later in rows[i + 1 :]}
                if float(row["loss"]) < best and (curve == "best" or is_last):
                    best = float(row["loss"])
                    time.append(float(row["st_tuner_time"]))
                    value.append(best)
            assert run.time.tolist() == time
            assert run.value.tolist() == value
            assert run.until == float(rows[-1]["st_tuner_time"])

    def test_other_clock_columns_and_names(self, tmp_path):
        runs = read(
            self.FOLDER, clock="evaluations", algorithm="scheduler_name", instance="backend"
        )
        assert runs.algorithms == ("ASHA", "RandomSearch")
        assert runs.until.tolist() == [len(self.rows("asha")), len(self.rows("rs"))]
        named = read(self.FOLDER, names="{algorithm}-{instance}-*-*-*-*-*-*-*", repetition="seed")
        assert named == read(self.FOLDER)
        archive = shutil.make_archive(str(tmp_path / "all"), "zip", self.FOLDER)
        assert read(archive) == named
        with pytest.raises(DataError, match="the column 'lss' is missing; there are loss, epoch"):
            read(self.FOLDER, value="lss")
        final = read(self.FOLDER, curve="final", value="epoch", chosen_by="loss")
        assert final.value.tolist() == [3.0, 3.0]


@THE_DATA
class TestCarps:
    def test_logs_and_configuration(self):
        runs = read(FILES / "carps" / "runs")
        assert runs.algorithms == ("Optuna-TPE", "RandomSearch")
        assert runs.instances == ("bbob/2/1/0", "dummy-mf")
        run = read(FILES / "carps" / "runs" / "Optuna-TPE")[0]
        log = FILES / "carps/runs/Optuna-TPE/BBOB/bbob/2/1/0/1/trial_logs.jsonl"
        costs = [json.loads(line)["trial_value"]["cost"] for line in log.read_text().splitlines()]
        assert run.value.tolist() == sorted(set(np.minimum.accumulate(costs)), reverse=True)
        assert run.until == 12

    def test_paths_name_runs_without_a_configuration(self, tmp_path):
        shutil.copytree(FILES / "carps" / "runs", tmp_path / "runs")
        for hidden in sorted(tmp_path.rglob(".hydra")):
            shutil.rmtree(hidden)
        assert read(tmp_path) == read(tmp_path / "runs") == read(FILES / "carps" / "runs")
        named = read(
            tmp_path, names="runs/{algorithm}/*/{b}/{d}/{f}/{i}/{seed}", instance=("d", "f")
        )
        assert named.instances == ("d=2, f=1",)

    def test_gathered_logs(self):
        pytest.importorskip("pyarrow")
        runs = read(FILES / "carps" / "gathered_logs.parquet")
        one = [run for run in runs if run.instance == "bbob/2/1/0" and run.repetition == 1]
        logs = [run for run in read(FILES / "carps" / "runs") if run.instance == "bbob/2/1/0"]
        for gathered, logged in zip(one, logs, strict=True):
            assert gathered.algorithm == logged.algorithm
            assert gathered.value.tolist() == logged.value.tolist()
            assert gathered.time.tolist() == logged.time.tolist()
        assert len(runs) == 8

    def test_several_objectives(self):
        with pytest.raises(DataError, match="has several objectives"):
            read(FILES / "carps/runs/RandomSearch/DUMMY_ObjectiveFunction/dummy-mo")


STORES = sorted((FILES / "mlflow").glob("*.gz"))
OPTIONS = {"value": "val_loss", "direction": "minimize", "algorithm": "model"}


class TestMlflow:
    @pytest.mark.parametrize("path", STORES, ids=lambda path: path.name)
    def test_databases_and_folders_of_two_versions(self, path):
        runs = read(path, **OPTIONS)
        assert runs.algorithms == ("mlp", "tree")
        assert runs.instances == ("digits", "wine")
        assert runs.clock == "steps"
        assert len(runs) == 9
        crashed = [run for run in runs if run.status is Status.CRASHED]
        assert [(*run[:2], run.repetition) for run in crashed] == [("mlp", "wine", 3)]
        assert crashed[0].value.tolist() == [2.5]  # infinity came first, which is no value
        assert all(run.until == 5 for run in runs if run.status is Status.FINISHED)
        # The first value of repetition 2 is nan, and not 0.
        first = {run.repetition: run.time[0] for run in runs if run[:2] == ("tree", "wine")}
        assert first == {1: 0.0, 2: 1.0}
        assert runs.value.min() > 0.1
        assert runs == read(STORES[0], **OPTIONS)

    @pytest.mark.parametrize("path", STORES, ids=lambda path: path.name)
    def test_curves(self, path):
        last = read(path, curve="last", **OPTIONS)
        assert set(last.time) <= {1.0, 5.0}
        options = {**OPTIONS, "value": "test_loss"}
        chosen = read(path, curve="final", chosen_by="val_loss", **options)
        every = read(path, **options)
        assert np.all(np.diff(chosen.offset) <= 1)
        for run, tested in zip(chosen, every, strict=True):
            assert run.status is Status.CRASHED or run.value[0] >= tested.value[-1]

    def test_one_error_says_all_that_is_missing(self):
        path = STORES[0]
        message = "several metrics, test_loss, val_loss: pass value='test_loss'; .*pass direction="
        with pytest.raises(DataError, match=message):
            read(path)
        with pytest.raises(
            DataError, match="'mlp-1' does not tell algorithm.*stored are exp.*model"
        ):
            read(path, value="val_loss", direction="minimize")
        with pytest.raises(DataError, match="no run has a metric 'loss'; there are test_loss, val"):
            read(path, value="loss", direction="minimize")
        with pytest.raises(DataError, match="clock='evaluations': expected 'steps' or 'seconds'"):
            read(path, clock="evaluations", **OPTIONS)
        named = {"value": "val_loss", "direction": "minimize", "names": "{algorithm}-{seed}"}
        assert read(path, **named) == read(path, **OPTIONS)

    def test_runs_without_a_seed_are_numbered(self, tmp_path):
        copy = tmp_path / "mlflow.db"
        copy.write_bytes(gzip.decompress(STORES[0].read_bytes()))
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute("DELETE FROM params WHERE key = 'seed'")
            connection.execute("DELETE FROM metrics WHERE run_uuid IN (SELECT run_uuid FROM runs "
                               "WHERE name = 'tree-1')")  # fmt: skip
        with pytest.warns(DataWarning, match="2 runs left out, without the metric 'val_loss'"):
            runs = read(copy, **OPTIONS)
        assert runs.repetition.tolist() == [0, 1, 0, 0, 1, 2, 0]


@pytest.mark.parametrize("name", ["optuna", "smac", "syne_tune", "carps", "mlflow"])
def test_other_files_are_refused_and_not_an_error(name, tmp_path):
    (tmp_path / "a.db").write_bytes(b"no database")
    (tmp_path / "metadata.json").write_text("[]")
    (tmp_path / "meta.yaml").write_text("[]")
    (tmp_path / "a.log").write_text('{"x": 1}')
    assert name in [row.name for row in FORMATS]
    with warnings.catch_warnings(), pytest.raises(DataError, match=rf"{name} +no "):
        read(tmp_path, format=name)
