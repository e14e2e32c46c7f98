"""The GitHub Action of the gate: its steps are run as scripts, as a runner would run them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ACTION = Path(__file__).parents[2] / ".github" / "actions" / "gate" / "action.yml"

PROGRAM = 'echo "o $(( $1 % 1000 + {handicap} ))"\n'

OPTIONS = {
    "command": "sh {folder}/built.sh {seed}",
    "instances": "instances",
    "budgets": "5",
    "direction": "minimize",
    "pattern": r"^o (?P<value>\S+)",
    "build": "cp program.sh built.sh",
    "polarbear": "",
}


@pytest.fixture
def repository(tmp_path):
    """A repository in which the last commit makes the program worse."""
    folder = tmp_path / "repository"
    (folder / "instances").mkdir(parents=True)
    for k in range(24):
        (folder / "instances" / f"{k}.txt").write_text(f"{k}")
    run_git(folder, "init", "--quiet")
    for handicap in (0, 2000):
        (folder / "program.sh").write_text(PROGRAM.format(handicap=handicap))
        run_git(folder, "add", "program.sh")
        run_git(folder, "commit", "--quiet", "-m", f"handicap {handicap}")
    return folder


def run_git(folder, *arguments):
    person = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(
        ["git", *person, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


class Runner:
    """Runs the steps of an action, with files for outputs and the summary."""

    def __init__(self, action, folder, temp, gate="", **inputs):
        self.action, self.folder, self.temp = action, folder, temp
        self.values = {
            f"inputs.{name}": inputs.get(name, option.get("default", ""))
            for name, option in action["inputs"].items()
        }
        self.summary = temp / "summary.md"
        polarbear = temp / "bin" / "polarbear"
        polarbear.parent.mkdir(parents=True)
        polarbear.write_text(f'#!/bin/sh\n{gate}exec {sys.executable} -m polarbear "$@"\n')
        polarbear.chmod(0o755)

    def fill(self, text):
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: self.values.get(match[1], ""), str(text))

    def run(self):
        """Run all steps until one fails; return its exit code, 0 if there is none."""
        for step in self.action["runs"]["steps"]:
            if "run" not in step:
                continue
            output = self.temp / "output"
            output.write_text("")
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.folder,
                env={
                    **os.environ,
                    "PATH": f"{self.temp / 'bin'}{os.pathsep}{os.environ['PATH']}",
                    "RUNNER_TEMP": str(self.temp),
                    "GITHUB_OUTPUT": str(output),
                    "GITHUB_STEP_SUMMARY": str(self.summary),
                    **{name: self.fill(value) for name, value in step.get("env", {}).items()},
                },
                check=False,
            )
            for line in output.read_text().splitlines():
                name, _, value = line.partition("=")
                self.values[f"steps.{step['id']}.outputs.{name}"] = value
            if done.returncode:
                return done.returncode
        return 0


@pytest.fixture
def action():
    return pytest.importorskip("yaml").safe_load(ACTION.read_text())


@pytest.mark.slow
def test_the_steps_build_both_versions_and_run_the_gate(action, repository, tmp_path):
    old = run_git(repository, "rev-parse", "HEAD~")
    runner = Runner(action, repository, tmp_path / "temp", **OPTIONS, old=old)
    assert runner.run() == 1  # the new version is worse
    assert runner.fill(action["outputs"]["answer"]["value"]) == "fail"
    assert "fail" in runner.summary.read_text().lower()
    assert (tmp_path / "temp" / "polarbear-old" / "built.sh").exists()
    assert (tmp_path / "temp" / "polarbear-gate" / "gate.db").exists()


@pytest.mark.parametrize(
    ("code", "undecided", "expected"),
    [
        (0, "pass", (0, "pass")),
        (2, "pass", (0, "undecided")),
        (2, "fail", (2, "undecided")),
        (3, "pass", (3, "error")),
    ],
)
def test_exit_codes_of_the_gate_are_those_of_the_job(
    action, repository, tmp_path, code, undecided, expected
):
    new = run_git(repository, "rev-parse", "HEAD")
    options = {**OPTIONS, "old": new, "undecided": undecided}
    runner = Runner(action, repository, tmp_path / "temp", gate=f"exit {code}\n", **options)
    assert (runner.run(), runner.values["steps.gate.outputs.answer"]) == expected


def test_the_cache_is_saved_under_a_key_of_both_commits(action):
    restore, save = [step for step in action["runs"]["steps"] if "uses" in step]
    assert restore["with"]["path"] == save["with"]["path"] == "${{ steps.versions.outputs.store }}"
    assert restore["with"]["key"] == save["with"]["key"]
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"].strip())
    assert save["if"] == "always()"
    scripts = "".join(step.get("run", "") for step in action["runs"]["steps"])
    assert "${{" not in scripts  # inputs reach scripts as variables, not as text of the script
