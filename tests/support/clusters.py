"""A Dask cluster of one's own: a scheduler and workers, each started from the command line."""

import os
import socket
import subprocess
import sys
from contextlib import contextmanager

from marks import PYTHONPATH

try:
    import distributed
except ImportError:
    distributed = None

ENVIRONMENT = os.environ | {
    "PYTHONPATH": PYTHONPATH,
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
    "PYTHONWARNINGS": "ignore",
}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Cluster:
    """A scheduler and workers, each started from the command line."""

    def __init__(self, folder, **environment):
        self.port, self.folder = free_port(), folder
        self.environment = ENVIRONMENT | environment
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes = []
        self.scheduler = self.start_scheduler()

    def start(self, *arguments, **more):
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]
        process = subprocess.Popen(
            command,
            env=self.environment | more,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def start_scheduler(self):
        return self.start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dashboard-address",
            ":0",
        )

    def start_worker(self, **environment):
        return self.start(
            "worker", self.address, "--nthreads", "1", "--dashboard-address", ":0", "--no-nanny",
            "--death-timeout", "60", "--host", "127.0.0.1", **environment,
        )  # fmt: skip

    def stop(self):
        for process in self.processes:
            process.kill()  # whether it is stopped or not
            process.wait()


@contextmanager
def cluster_at(folder, workers, **environment):
    cluster = Cluster(folder, **environment)
    try:
        cluster.workers = [cluster.start_worker() for _ in range(workers)]
        with distributed.Client(cluster.address, timeout="120s") as client:
            if workers:
                client.wait_for_workers(workers, timeout=120)
            yield cluster, client
    finally:
        cluster.stop()
