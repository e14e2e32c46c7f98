"""The written protocol: its examples against a server, and workers in two languages."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import polarbear as pb
from hubs import ask, race_of_file, setup
from polarbear.hub.board import Policy
from polarbear.hub.http_api import OPERATIONS, HubApi
from polarbear.hub.hub_backend import WorkerHub
from polarbear.hub.hub_file import HubFile
from polarbear.hub.service import HubService
from polarbear.hub.tokens import add_contributor
from polarbear.racing.jobs import RunId, job
from polarbear.running.solvers.configuration import load
from typed import command
from waiting import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "workers.md"
EXAMPLE = re.compile(r"<!-- (\w+) -->\n```json\n(.*?)```\n```json\n(.*?)```", re.DOTALL)


def fill(text, known):
    for name in sorted(known, key=len, reverse=True):
        text = text.replace(f'"{name}"', json.dumps(known[name]))
    return json.loads(text)


def kinds(value):
    """The shape of an answer: its keys and types, where content differs from call to call."""
    if isinstance(value, dict):
        return {key: kinds(part) for key, part in value.items()}
    if isinstance(value, list):
        return [kinds(part) for part in value[:1]]
    return (
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
    )


@pytest.mark.skipif(not PAGE.exists(), reason="the package is installed without its documents")
def test_the_examples_of_the_specification_are_those_of_the_server(tmp_path):
    backend = WorkerHub(tmp_path / "race.hub", 0.0).start_backend(setup())
    names = [(name, str(k)) for k in range(6) for name in ("fast", "slow")]
    backend.submit([job(0, RunId(*key, 0), 4.0) for key in names])
    app = HubApi(HubService(tmp_path / "race.hub", Policy(probation=0)))
    token = add_contributor(app.service.hub, "ann", role="submit")
    app.service.hub.allow_newcomers({"new": "0123"})
    race = ask(app, "status", {}, token=token)[1]["race"]
    known = {"DIGEST": race["solvers"]["fast"], "DIGEST2": "0123"}
    seen = []
    for operation, sent, expected in EXAMPLE.findall(PAGE.read_text("utf-8")):
        seen.append(operation)
        if operation == "fail":
            second = ask(app, "lease", {"worker": known["ID"]}, token=token)[1]["jobs"][0]
            known |= {"JOB2": second["id"], "PROOF2": second["lease"]}
        status, answer = ask(app, operation, fill(sent, known), token=token)
        assert status == 200, (operation, answer)
        if operation == "join":
            known["ID"] = answer["worker"]
        if operation == "lease":
            known |= {"JOB": answer["jobs"][0]["id"], "PROOF": answer["jobs"][0]["lease"]}
        wanted = fill(expected, known)
        if operation == "status":
            assert answer["race"].keys() == wanted["race"].keys()
            answer["race"] = wanted["race"] = {}
        assert kinds(answer) == kinds(wanted), operation
        if operation in ("results", "fail", "heartbeat"):
            assert answer == wanted
    assert sorted(seen) == sorted(OPERATIONS)
    backend.close()


MODULE = """
SKILL = {"left": 0, "middle": 200_000_000, "right": 900_000_000}

def _solver(name):
    def solve(job):
        # Integers alone, so that every language gets the same values.
        state = job.seed % 2147483647
        for at in (1, 10, 100):
            state = (state * 16807) % 2147483647
            yield at, state + SKILL[name] - at * 10_000_000_000
    return solve

left, middle, right = map(_solver, SKILL)

def instance(rng):
    return 0
"""

RACE = """
times = [1, 10, 100]
direction = "minimize"
clock = "evaluations"
instances.python = "own_module:instance"
solvers.left.python = "own_module:left"
solvers.middle.python = "own_module:middle"
solvers.right.python = "own_module:right"
rules.max_runs = 36
rules.certainty = 0.9
"""

JAVASCRIPT = """
const skill = { left: 0, middle: 200000000, right: 900000000 };
const run = (name) => (job) => {
  const time = [], value = [];
  let state = BigInt(job.seed) % 2147483647n;
  for (const at of [1, 10, 100]) {
    if (at > job.horizon) break;
    state = (state * 16807n) % 2147483647n;
    time.push(at);
    value.push(Number(state) + skill[name] - at * 10000000000);
  }
  return { time, value, until: job.horizon, status: "cut" };
};
export const solvers = Object.fromEntries(
  Object.keys(skill).map((name) => [name, { run: run(name) }]),
);
"""


def race_alone(race_file):
    """The race with one local worker, in this process."""
    given, race = race_file.setup, race_of_file(race_file)
    while jobs := race.ask():
        for one in jobs:
            made = [pair for pair in given.solvers[one.algorithm](one) if pair[0] <= one.horizon]
            race.tell(one.run(*zip(*made, strict=True)))
    return race


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_workers_in_python_and_javascript_confirm_each_other(tmp_path, monkeypatch):
    """Every result is made by both: a race with an audit share of 1 ends as with one worker."""
    for name, text in (("own_module.py", MODULE), ("race.toml", RACE), ("own.mjs", JAVASCRIPT)):
        (tmp_path / name).write_text(text)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    hub = HubFile(tmp_path / "race.hub")
    tokens = {name: add_contributor(hub, name) for name in ("ann", "bob")}
    words = command("serve", "race.db", "--workers", "race.toml", "--port", 0, "--audit", 1)
    pipe = {"stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=tmp_path, env=environment, **pipe) as server:
        monkeypatch.syspath_prepend(tmp_path)
        alone = race_alone(load(tmp_path / "race.toml"))
        url = server.stdout.readline().split(" at ")[1].split()[0]
        wait_until(lambda: hub.get("race"))
        script = ["node", ROOT / "examples" / "worker.mjs", url, tokens["bob"], "own.mjs"]
        other = subprocess.Popen(script, cwd=tmp_path, **pipe)
        words = command("worker", url, "--solvers", "race.toml", "--idle", 600)
        own = subprocess.Popen(
            words, cwd=tmp_path, env=environment | {"POLARBEAR_TOKEN": tokens["ann"]}
        )
        try:
            said = other.communicate(timeout=8 * PATIENCE)[0]
        finally:
            for process in (own, other, server):
                process.terminate()
        own.wait(PATIENCE)
    hub.close()
    with pb.open_store(tmp_path / "race.db", read_only=True) as store:
        assert store.runs() == alone.runs
        assert store.status().pareto == alone.pareto
    assert int(said.split()[0]) >= alone.n_runs
