"""A SLURM cluster of one's own: one node, this machine, with everything in a temporary folder."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")

CONF = """
ClusterName=polarbear
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=8000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def place(program):
    """Where a program is; daemons are not in everybody's path."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def why_not():
    """What is missing to run SLURM here."""
    missing = [program for program in PROGRAMS if place(program) is None]
    if missing:
        return f"no {missing[0]} (apt-get install slurmctld slurmd slurm-client munge)"
    return "" if os.getuid() == 0 else "SLURM starts the jobs of others, so it must be root"


class Slurm:
    """A controller and a node; jobs get what the node has four times."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="polarbear-slurm-"))
        self.processes = []
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        conf = self.folder / "slurm.conf"
        names = {"host": socket.gethostname().partition(".")[0], "folder": self.folder}
        conf.write_text(CONF.format(controller=free_port(), daemon=free_port(), **names))
        self.environment = os.environ | {"SLURM_CONF": str(conf)}
        try:
            names = ("socket", "key-file", "log-file", "pid-file", "seed-file")
            files = [f"--{name}={self.folder}/munge.{name.partition('-')[0]}" for name in names]
            self._start("munged", "--foreground", "--force", *files)
            self._until((self.folder / "munge.socket").exists)
            self._start("slurmctld", "-D", "-f", str(conf))
            self._start("slurmd", "-D", "-f", str(conf))
            self._until(lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%T"))
        except BaseException:
            self.remove()
            raise

    def ask(self, program, *arguments):
        """What a command of SLURM says."""
        done = subprocess.run(
            [place(program), *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.stdout.strip()

    def submit(self, *lines, options=()):
        """Put a script into the queue: its number."""
        script = self.folder / f"job{len(list(self.folder.glob('job*')))}.sh"
        script.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
        output = f"--output={self.folder}/job-%A-%a.log"
        return self.ask("sbatch", "--parsable", output, *options, str(script))

    def running(self):
        """The jobs that run, as SLURM names them: of an array, 7_1."""
        found = self.ask("squeue", "--noheader", "--array", "--states=RUNNING", "--format=%i")
        return found.split()

    def remove(self):
        self.ask("scancel", "--full", "--signal=KILL", "--user=root")
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, program, *arguments):
        with (self.folder / f"{program}.said").open("wb") as said:
            process = subprocess.Popen(
                [place(program), *arguments], env=self.environment, stdout=said, stderr=said
            )
        self.processes.append(process)

    def _until(self, condition, seconds=90):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end or any(p.poll() is not None for p in self.processes):
                logs = [*self.folder.glob("*.said"), *self.folder.glob("*.log")]
                raise RuntimeError("\n".join(path.read_text()[-2000:] for path in logs))
            time.sleep(0.1)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
