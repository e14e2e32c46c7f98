"""A PostgreSQL server of one's own: in a temporary folder, on a free port of this machine."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psutil

try:
    import psycopg
except ImportError:
    psycopg = None

USERS = ("postgres", "nobody")


def binaries():
    """The folder of the server's programs; none if it is not installed."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    places = [*folders, *([Path(found).parent] if found else [])]
    return next((place for place in reversed(places) if (place / "postgres").exists()), None)


def why_not():
    """What is missing to run a server here."""
    if psycopg is None:
        return "psycopg is not installed"
    return "" if binaries() else "no PostgreSQL server is installed (apt-get install postgresql)"


def known(user):
    try:
        return pwd.getpwnam(user)
    except KeyError:
        return None


class Server:
    """Started on creation; the data survive ``stop`` and ``kill`` until ``remove``."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="polarbear-postgres-"))
        # A server refuses to run as root.
        self.user = next(filter(known, USERS)) if os.getuid() == 0 else None
        if self.user:
            shutil.chown(self.folder, self.user)
        self.process = None
        self._run("initdb", "-D", self.folder / "data", "-U", "polarbear", "-A", "trust", "-N")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"postgresql://polarbear@127.0.0.1:{self.port}/postgres"
        self.start()

    def start(self):
        log = (self.folder / "log").open("ab")
        command = [binaries() / "postgres", "-D", self.folder / "data", "-p", str(self.port)]
        command += ["-h", "127.0.0.1", "-k", self.folder]
        self.process = subprocess.Popen(
            command, cwd=self.folder, stdout=log, stderr=log, user=self.user
        )
        log.close()
        end = time.monotonic() + 60
        while True:
            try:
                with psycopg.connect(self.url, connect_timeout=5) as connection:
                    found = connection.execute("SHOW data_directory").fetchone()
                # Another test process may have started its server at this port.
                assert found == (str(self.folder / "data"),), f"another server: {found}"
                return
            except psycopg.OperationalError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.05)

    def stop(self, how=signal.SIGINT):
        """SIGINT: shut down at once; SIGQUIT: without writing anything; SIGKILL: like a crash."""
        self.process.send_signal(how)
        self.process.wait(60)

    @contextmanager
    def frozen(self):
        """Stop all processes of the server for a while; the kernel still accepts connections."""
        first = psutil.Process(self.process.pid)
        first.suspend()  # before its children, so that there are no more of them
        every = [first, *first.children(recursive=True)]
        for process in every[1:]:
            process.suspend()
        try:
            yield
        finally:
            for process in every:
                process.resume()

    def remove(self):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder)

    def _run(self, program, *arguments):
        command = [binaries() / program, *arguments]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True, user=self.user)
