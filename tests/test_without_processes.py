"""Analysis where there are no processes, as in a browser: from a zip of results to a report."""

import subprocess
import sys
import zipfile

import polarbear as pb

BLOCKED = ("psutil", "fcntl", "resource", "multiprocessing", "_multiprocessing", "pwd", "termios")

PROGRAM = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
import polarbear as pb

runs = pb.read(sys.argv[1], direction="minimize", clock="evaluations")
posterior = pb.fit(runs)
print(posterior.verdict())
print(pb.select(posterior, pb.preferences.between(1_000, 10_000)).algorithms)
pb.report(posterior, sys.argv[2])
assert not {{*{blocked!r}}} & {{*sys.modules}}
"""


def test_a_zip_of_results_becomes_a_report(tmp_path):
    pb.example().to_csv(tmp_path / "runs.csv")
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as archive:
        archive.write(tmp_path / "runs.csv", "runs.csv")
    program = PROGRAM.format(blocked=BLOCKED)
    arguments = [str(tmp_path / "runs.zip"), str(tmp_path / "report.html")]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "('CMA-ES',)" in done.stdout
    assert (tmp_path / "report.html").stat().st_size > 10_000
