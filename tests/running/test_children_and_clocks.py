"""What the children of a run do counts: their CPU time, and what they leave behind."""

import fcntl
import os
import subprocess
import sys
import time
from contextlib import closing

import pytest

import polarbear as pb
from polarbear.data.run import Status
from polarbear.errors import DataWarning
from polarbear.racing.jobs import RunId, job
from polarbear.running.backends.folder_worker import run_folder_jobs
from polarbear.running.backends.interface import start_backend
from polarbear.running.backends.shared_folder import SharedFolder
from polarbear.running.solvers.identity import describe_differences, identify
from polarbear.running.solvers.output_lines import read_lines
from polarbear.running.solvers.setup import Limits, Setup
from waiting import wait_for_outcomes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

BURN = "import time\nwhile time.process_time() < {}: pass"


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def runs_of(solvers, instances=("a",), times=(0.2, 3.0), **more):
    setup = Setup.of(solvers, instances, times=times, direction="minimize", **more)
    name = setup.instances.names[0]
    with closing(start_backend(setup, 1)) as backend:
        backend.submit([job(0, RunId(one, name, 0), times[-1]) for one in setup.solvers])
        return {one.job.algorithm: one.run for one in wait_for_outcomes(backend)}


def with_child(_job):
    yield 5.0
    subprocess.run([sys.executable, "-c", BURN.format(0.4)], check=True)
    yield 4.0


def dies(_job):
    yield 5.0
    burn(0.1)
    os._exit(1)


def slow_to_build(name):
    burn(0.5)
    return name


def test_cpu_time_is_that_of_a_run_and_its_children():
    """That of children did not count, and that of the making of an instance did."""
    program = f"echo o 5; {sys.executable} -c '{BURN.format(0.4)}'"
    command = pb.Command(["sh", "-c", program.replace("{", "{{")], r"o (?P<value>\S+)", clock="cpu")
    runs = runs_of({"child": with_child, "program": command}, clock="cpu")
    assert runs["child"].time[1] >= 0.38
    assert runs["program"].until >= 0.38
    instances = pb.Instances(["a"], slow_to_build)
    (died,) = runs_of({"dies": dies}, instances, clock="cpu").values()
    assert died.status == Status.CRASHED
    assert 0.09 <= died.until < 0.45


def test_lines_are_read_by_any_descriptor_and_not_longer_than_a_program_runs():
    reading, writing = os.pipe()
    high = fcntl.fcntl(reading, fcntl.F_DUPFD, 1030)  # more than select() takes
    os.write(writing, b"one\ntwo\n" * 3)
    assert [*read_lines(high, lambda: True)] == ["one", "two"] * 3
    for descriptor in (reading, writing, high):
        os.close(descriptor)


@pytest.mark.parametrize(("code", "status"), [(0, "finished"), (1, "crashed")])
def test_a_program_ends_when_it_ends_though_a_child_keeps_its_output(code, status):
    """It was waited for until its last child had closed the output, by default for a day."""
    program = pb.Command(
        ["sh", "-c", f"echo 1s: 5; sleep 500 & exit {code}"], r"(?P<time>\d+)s: (?P<value>\d+)"
    )
    (run,) = runs_of({"program": program}, times=(1.0, 60.0)).values()
    assert (run.status, run.value) == (status, (5.0,))


def test_a_fork_does_not_write_into_the_run_of_its_parent():
    def forks(job):
        objective = job.track(lambda x: float(x))
        objective(50)
        child = os.fork()
        if not child:
            try:
                objective(1)
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    (run,) = runs_of({"forks": forks}, times=(1, 100), clock="evaluations").values()
    assert run.value == (50.0,)


def test_no_evaluation_is_made_after_a_horizon_between_two():
    def counts(job):
        objective = job.track(lambda x: -float(x))
        for k in range(100):
            objective(k)

    (run,) = runs_of({"counts": counts}, times=(10, 62.5), clock="evaluations").values()
    assert len(run.time) == 62
    assert run.until == 62.5


def test_a_limit_that_every_run_may_reach_is_said():
    with pytest.warns(DataWarning, match="wall_seconds=3 is the last time"):
        runs_of({"dies": dies}, clock="wall", limits=Limits(wall_seconds=3.0))


MODULE = """
import functools, re
import numpy as np

@functools.lru_cache
def offset(k):
    return k + {0}

TABLE = np.array([{1}])

class Config(dict):
    __getattr__ = dict.__getitem__

class Timer:
    def __init__(self):
        self.begin = id(self)  # another in each process

CONFIG, TIMER = Config(step=1), Timer()

class Settings:
    steps = [{2}]
    patterns = [re.compile("a")]

def solve(job):
    yield CONFIG["step"], offset(1) + TABLE[0] + Settings.steps[0] + TIMER.begin
"""


def solver_of(*numbers):
    names = {"__name__": "mine"}
    exec(MODULE.format(*numbers), names)
    return names["solve"]


def known(solver, instances=("a",)):
    times, direction = [1, 2], "minimize"
    return identify(Setup.of({"s": solver}, instances, times=times, direction=direction))


@pytest.mark.parametrize("numbers", [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_what_a_solver_uses_of_its_module_is_part_of_it(numbers):
    before, now = known(solver_of(0, 0, 0)), known(solver_of(*numbers))
    assert describe_differences(before, known(solver_of(0, 0, 0))) == []
    assert describe_differences(before, now) == ["solver 's' has changed: its code is another"]


def test_files_in_options_and_of_built_instances_are_part_of_what_they_name(tmp_path):
    path = tmp_path / "settings.txt"
    whole = tmp_path / "lr=0.1"
    command = pb.Command(["echo", f"--config={path}", str(whole)], r"(?P<value>.)")
    built = pb.Instances([str(path)], slow_to_build)
    path.write_text("1")
    whole.write_text("1")
    before = known(command), known(with_child, built)
    path.write_text("2")
    now = known(command), known(with_child, built)
    found = [describe_differences(*both) for both in zip(before, now, strict=True)]
    assert found == [
        ["solver 's' has changed: its program, or a file among its arguments, is another"],
        [f"instance '{path}' has another content"],
    ]
    path.write_text("1")
    whole.write_text("2")
    assert describe_differences(before[0], known(command))


SOLVERS = """
def solve(job):
    yield 1, {} + job.seed % 7
solvers, instances = {{"solve": solve}}, ["a"]
"""


def test_a_folder_does_not_give_results_of_other_code(tmp_path):
    """Results that were left in a folder were those of the next race, also of an edited solver."""
    asked = [job(0, RunId("solve", "a", 0), 2.0)]
    found = []
    for version in (1000, 2000):
        path, code = tmp_path / f"{version}.py", {}
        path.write_text(SOLVERS.format(version))
        exec(path.read_text(), code)
        setup = Setup.of(code["solvers"], code["instances"], times=[1, 2], direction="minimize")
        with closing(
            start_backend(setup, SharedFolder(tmp_path / "folder", pause=0.02))
        ) as backend:
            backend.submit(asked)
            run_folder_jobs(tmp_path / "folder", str(path), max_runs=1, idle_seconds=5)
            found += [one.run.value[0] // 1000 for one in wait_for_outcomes(backend)]
    assert found == [1.0, 2.0]
