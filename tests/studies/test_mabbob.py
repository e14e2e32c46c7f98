"""MA-BBOB as it is evaluated in the study, and the optimisers of the studies."""

import numpy as np
import pytest

ioh = pytest.importorskip("ioh")
pytest.importorskip("modcma")

from mabbob.problem import ManyAffine  # noqa: E402
from tools.modular import cma_es, random_search  # noqa: E402

import polarbear as pb  # noqa: E402
from polarbear.running.solvers.job import HorizonReached, make_trial_job  # noqa: E402


@pytest.mark.parametrize("instance", [1, 7, 23])
def test_values_are_those_of_ioh(instance):
    ours, whole = ManyAffine(instance, 4), ioh.problem.ManyAffine(instance, 4)
    points = np.random.default_rng(instance).uniform(-5, 5, (20, 4))
    expected = [whole(x) for x in points]
    np.testing.assert_allclose(ours(points), expected, rtol=1e-12)
    np.testing.assert_allclose([ours(x) for x in points], expected, rtol=1e-12)
    assert ours(np.asarray(whole.optimum.x)) < 1e-9


def searched(solver, seed, horizon=600, dimension=3):
    seen = []
    problem = ManyAffine(2, dimension)

    class Watching:
        def __init__(self):
            self.dimension = dimension

        def __call__(self, x):
            seen.append(np.array(x))
            return problem(x)

    job = make_trial_job(Watching(), horizon=horizon, seed=seed)
    with pytest.raises(HorizonReached):
        solver(job)
    return np.vstack(seen), job.improvements


@pytest.mark.parametrize("ssa", ["CSA", "TPA", "MXNES"])
def test_searches_stay_in_the_box_stop_at_the_horizon_and_repeat_exactly(ssa):
    solver = cma_es(ssa=ssa, matrix_adaptation="COVARIANCE")
    points, found = searched(solver, seed=5)
    assert len(points) == 600
    outside = np.any(np.abs(points) > 5, axis=1).mean()
    assert outside == 0 if ssa != "TPA" else outside < 0.1  # its two probes are not corrected
    searched(cma_es(ssa="XNES"), seed=1, horizon=37)  # leaves modcma's generator anywhere
    assert searched(solver, seed=5)[1] == found
    assert searched(solver, seed=6)[1] != found


def test_a_search_beats_chance():
    best = searched(cma_es(ssa="CSA"), seed=1, horizon=2000)[1][1][-1]
    assert best < searched(random_search, seed=1, horizon=2000)[1][1][-1]


@pytest.mark.slow
def test_complete_runs_go_on_from_their_file(tmp_path):
    from mabbob.run import problem, solvers
    from tools.fixed import CHUNK, complete

    names = [str(k) for k in range(1, CHUNK + 3)]
    times = pb.grid.log(10, 100, 4)
    chosen = {name: solvers()[name] for name in ("CSA", "RS")}
    path = tmp_path / "fixed.npz"
    whole = complete(path, chosen, problem(2), names, times, 2)
    with np.load(path) as file:
        kept = {name: file[name] for name in file.files}
    kept["CSA"][2] = np.nan  # not made yet
    np.savez(path, **{name: values[:-1] for name, values in kept.items()})
    again = complete(path, chosen, problem(2), names, times, 2)
    assert again.algorithms == whole.algorithms
    assert again.at(times) == pytest.approx(whole.at(times), rel=1e-6)
