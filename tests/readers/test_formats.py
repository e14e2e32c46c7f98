"""Every format, on files written by the programs themselves."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polarbear import DataError, Status, rank, read

FILES = Path(__file__).parent / "files"


@pytest.fixture(scope="module")
def ioh_logs(tmp_path_factory):
    """Logs of the real logger, and what it was given to log."""
    ioh = pytest.importorskip("ioh")
    folder = tmp_path_factory.mktemp("ioh")
    rng = np.random.default_rng(7)
    seen = {}
    improvement = ioh.logger.trigger.OnImprovement()  # kept: the logger does not keep it
    for algorithm in ("A", "B"):
        logger = ioh.logger.Analyzer(
            triggers=[improvement], root=str(folder), folder_name=algorithm,
            algorithm_name=algorithm,
        )  # fmt: skip
        for instance in (1, 2):
            problem = ioh.get_problem(1, instance, 2, ioh.ProblemClass.BBOB)
            problem.attach_logger(logger)
            for repetition in range(2):
                values = []
                for _ in range(60):
                    problem(rng.uniform(-5, 5, size=2))
                    values.append(problem.state.current.y - problem.optimum.y)
                seen[algorithm, f"f1 Sphere d2 i{instance}", repetition] = values
                problem.reset()
            problem.detach_logger()
        logger.close()
    return folder, seen


class TestIoh:
    def test_trajectories_are_what_was_logged(self, ioh_logs):
        folder, seen = ioh_logs
        runs = read(folder)
        assert runs.direction == "minimize"
        assert runs.clock == "evaluations"
        assert len(runs) == len(seen) == 8
        for run, values in zip(runs, runs.at(np.arange(1, 61)), strict=True):
            expected = seen[run.algorithm, run.instance, run.repetition]
            assert_allclose(values, np.minimum.accumulate(expected), atol=1e-9)
            assert run.until == 60

    def test_a_single_index_and_an_archive(self, ioh_logs, tmp_path):
        folder, _ = ioh_logs
        (index,) = (folder / "A").glob("*.json")
        assert read(index) == read(folder).filter(algorithms=["A"])
        assert read(shutil.make_archive(str(tmp_path / "a"), "zip", folder)) == read(folder)
        for file in [file for file in folder.rglob("*") if file.is_file()]:
            packed = tmp_path / "packed" / file.relative_to(folder)
            packed.parent.mkdir(parents=True, exist_ok=True)
            packed.with_name(f"{packed.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        assert read(tmp_path / "packed") == read(folder)

    def test_no_value_is_better_than_the_exact_best(self, ioh_logs, tmp_path):
        """The table has ten decimals; rounding must not make ties with a zero that never was."""
        folder, _ = ioh_logs
        copy = tmp_path / "copy"
        shutil.copytree(folder / "A", copy)
        (table,) = copy.glob("*/*.dat")
        lines = table.read_text().splitlines()
        lines[2] = f"{lines[2].split()[0]} 0.0000000000"
        del lines[4]
        table.write_text("\n".join(lines) + "\n")
        best = read(folder / "A").filter(where=[True, False, False, False]).value.min()
        assert_allclose(read(copy)[0].value.min(), best)
        assert best > 0
        head = lines.index(lines[0], 1)
        table.write_text("\n".join([*lines[:2], *lines[head:]]) + "\n")
        assert_allclose(read(copy)[0].value.min(), best)  # the index knows it without the table
        assert read(copy)[0].until == 60

    def test_indices_before_json(self):
        runs = read(FILES / "ioh" / "ioh_0.3.1_info")
        assert runs.instances == ("f1 Sphere d2 i1", "f1 Sphere d2 i2")
        assert len(runs) == 4
        assert set(runs.until) == {100}
        assert_allclose(runs[0].value[:3], [36.728946, 29.717826, 29.214045])

    def test_a_folder_that_minimises_and_maximises(self):
        folder = FILES / "ioh" / "ioh_0.3.2.8.3_info"
        with pytest.raises(DataError, match="runs that minimise and runs that maximise"):
            read(folder)
        lower, higher = read(folder, direction="minimize"), read(folder, direction="maximize")
        assert lower.algorithms == higher.algorithms == ("OnePlusOneES", "RandomSearch")
        assert len(lower) == len(higher) == 16
        assert lower.instances[0] == "f1 Sphere d2 i1"
        assert higher.instances[0] == "f2 LeadingOnes d8 i1"
        assert higher.value.max() <= 16  # raw values, not those shifted by the instance

    def test_invalid_json_is_named_by_its_line(self):
        with pytest.raises(DataError, match=r"IOHprofiler_f1_Sphere.json: line 7: not valid JSON"):
            read(FILES / "ioh" / "ioh_0.3.22_quirks")

    def test_an_index_that_lists_other_runs_than_the_table_holds(self, ioh_logs, tmp_path):
        folder, _ = ioh_logs
        copy = tmp_path / "copy"
        shutil.copytree(folder / "A", copy)
        (table,) = copy.glob("*/*.dat")
        table.write_text(table.read_text() + "evaluations raw_y\n1 2.0\n")
        with pytest.raises(DataError, match="holds 5 runs, its index lists 4"):
            read(copy)


@pytest.fixture(scope="module")
def coco_logs(tmp_path_factory):
    """Logs of the real observer, which always writes below the working folder."""
    cocoex = pytest.importorskip("cocoex")
    folder = tmp_path_factory.mktemp("coco")
    rng = np.random.default_rng(7)
    seen = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        observer = cocoex.Observer("bbob", "result_folder: rs algorithm_name: RS")
        chosen = "dimensions: 2,3 function_indices: 1 instance_indices: 1-3"
        for problem in cocoex.Suite("bbob", "", chosen):
            problem.observe_with(observer)
            values = [problem(rng.uniform(-5, 5, problem.dimension)) for _ in range(50)]
            number, dimension = problem.id_instance, problem.dimension
            seen[f"bbob f1 d{dimension} i{number}"] = np.minimum.accumulate(values)
            problem.free()
    return folder / "exdata", seen


class TestCoco:
    def test_trajectories_are_what_was_observed(self, coco_logs):
        folder, seen = coco_logs
        runs = read(folder)
        assert runs.algorithms == ("RS",)
        assert set(runs.instances) == set(seen)
        assert set(runs.until) == {50}
        for run, values in zip(runs, runs.at(np.arange(1, 51)), strict=True):
            # The log subtracts the optimum, which is the same for a whole run. It has a row at
            # each new target and at some evaluations, so it may lag behind between its rows.
            best = seen[run.instance]
            optimum = best[-1] - values[-1]
            assert_allclose(run.value + optimum, best[run.time.astype(int) - 1], rtol=1e-6)
            assert np.all(values + optimum >= best - 1e-6)
            assert len(run.time) > 2

    def test_archives_as_they_are_published(self, coco_logs, tmp_path):
        folder, _ = coco_logs
        archive = shutil.make_archive(str(tmp_path / "rs"), "gztar", folder)
        assert read(archive) == read(folder)

    def test_logs_before_2016(self, tmp_path):
        (tmp_path / "bbobexp_f1.info").write_text(
            "funcId = 1, DIM = 2, Precision = 1.000e-08, algId = 'BFGS'\n% a comment\n"
            "data_f1/bbobexp_f1_DIM2.dat, 1:14|-5.2e-09, 1:9|1.0e+00, 2"
        )
        (tmp_path / "data_f1").mkdir()
        head = (
            "% function evaluation | noise-free fitness - Fopt (7.948e+01) | best noise-free ...\n"
        )
        blocks = ["1 +5.0e+00 +5.0e+00 +8.4e+01\n10 +6.0e+00 +1.0e-09 +7.9e+01\n"]
        blocks += ["1 +2.0e+00 +2.0e+00 +8.1e+01\n", "3 +4.0e+00 +4.0e+00 +8.3e+01\n"]
        data = tmp_path / "data_f1" / "bbobexp_f1_DIM2.dat"
        data.write_text("".join(head + block for block in blocks))
        runs = read(tmp_path)
        assert runs.instances == ("f1 d2 i1", "f1 d2 i2")
        assert runs.repetition.tolist() == [0, 1, 0]
        assert runs.until.tolist() == [14, 9, 3]
        assert_array_equal(runs.at([1])[:, 0], [5, 2, np.inf])

    def test_constrained_problems_and_those_with_two_objectives(self):
        runs = read(FILES / "coco" / "bbob-constrained")
        assert runs.instances == ("bbob-constrained f1 d2 i1", "bbob-constrained f1 d2 i2")
        with_two = read(FILES / "coco" / "bbob-biobj")
        assert with_two.instances == ("bbob-biobj f1 d2 i1", "bbob-biobj f1 d2 i2")
        assert with_two.order_by == "the indicator hyp of COCO"
        assert_array_equal(with_two.at([3, 40])[0], [6.602402086148275e01, 6.529612225552668e01])

    def test_the_direction_is_known(self, coco_logs):
        folder, _ = coco_logs
        assert read(folder, direction="minimize") == read(folder)
        with pytest.raises(DataError, match="direction='maximize': this format always has"):
            read(folder, direction="maximize")


class TestBenchopt:
    @pytest.mark.parametrize("version", ["1.6.0", "1.10.0"])
    def test_both_layouts(self, version):
        pytest.importorskip("pyarrow")
        runs = read(FILES / "benchopt" / f"benchopt_{version}.parquet")
        assert runs.algorithms == ("CD", "GD[step=1.0]", "Normal-Equations")
        assert "Easy[n_samples=20] | Least Squares[reg=0.1]" in runs.instances
        assert len(runs) == 12
        assert runs.clock == "seconds"
        once = [run for run in runs if run.algorithm == "Normal-Equations"]
        assert {run.status for run in once} == {Status.FINISHED}
        assert all(len(run.value) == 1 for run in once)
        assert 0 < runs.time.max() < 0.01  # seconds, not numbers of iterations
        descent = next(run for run in runs if run.algorithm == "CD")
        assert_allclose(descent.value[[0, -1]], [48.9203906, 0.28521749])
        others = {run.status for run in runs if run.algorithm != "Normal-Equations"}
        assert others == {Status.CUT, Status.UNSTATED}  # the files do not say why they stopped

    def test_as_csv_and_by_another_objective(self, tmp_path):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        path = FILES / "benchopt" / "benchopt_1.10.0.parquet"
        table = pandas.read_parquet(path)
        table.to_csv(tmp_path / "results.csv", index=False)
        assert read(tmp_path / "results.csv") == read(path)
        table["objective_value"] = float("nan")  # diverged: no value, not a file nobody can read
        table.to_parquet(tmp_path / "diverged.parquet")
        assert len(read(tmp_path / "diverged.parquet").value) == 0
        with pytest.raises(DataError, match="benchopt +no column 'objective_none' among"):
            read(path, value="objective_none", format="benchopt")


class TestNevergrad:
    def test_budgets_become_times_and_seeds_repetitions(self):
        runs = read(FILES / "nevergrad" / "tiny.csv")
        assert runs.algorithms == ("DE", "OnePlusOne", "RandomSearch")
        assert runs.instances == (
            "FarOptimumFunction, dimension=2", "rastrigin, dimension=3", "sphere, dimension=3",
        )  # fmt: skip
        assert set(runs.repetition) == {0, 1}
        assert set(runs.time) <= {20, 60, 200}
        assert set(runs.until) == {200}

    def test_the_order_of_rows_does_not_matter(self, tmp_path):
        head, *rows = (FILES / "nevergrad" / "tiny.csv").read_text().splitlines()
        shuffled = [head, *sorted(rows, key=lambda row: row[::-1])]
        (tmp_path / "shuffled.csv").write_text("\n".join(shuffled))
        assert read(tmp_path / "shuffled.csv") == read(FILES / "nevergrad" / "tiny.csv")

    def test_without_seeds_the_best_is_not_compared_with_the_best(self, tmp_path):
        rng = np.random.default_rng(2)
        rows = [
            f"{rng.normal(mean, 0.8)},10,0.1,,f,10,{name}"
            for name, mean in (("A", 5.0), ("B", 5.15))
            for _ in range(200)
        ]
        head = "loss,elapsed_budget,elapsed_time,seed,function_class,budget,optimizer_name"
        (tmp_path / "t.csv").write_text("\n".join([head, *rows]))
        rate = rank(read(tmp_path), [10]).win_rate("A", "B")[0]
        assert 0.45 < rate < 0.65  # 0.55 is expected, and all but 1 if losses were sorted

    def test_failed_runs_have_no_value(self):
        runs = read(FILES / "nevergrad" / "error_rows.csv")
        assert len(runs.value) == 0
        assert len(runs) == 1
