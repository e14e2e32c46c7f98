"""Solvers that behave, and solvers that do not."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time


def good(job):
    """Improves at every evaluation until its horizon."""
    for k in range(1, 10**9):
        job.report(1 / k, time=k)


def quick(_):
    """Stops by itself."""
    yield 1, 3.0
    yield 5, 2.0


def first(job):
    job.report(7.0, time=3)


def segfault(job):
    first(job)
    ctypes.string_at(0)


def deaf(job):
    first(job)
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


def stopped(job):
    first(job)
    os.kill(os.getpid(), signal.SIGSTOP)


def hog(job):
    first(job)
    kept = []
    while True:
        kept.append(bytearray(b"x" * 10_000_000))


def greedy(job):
    first(job)
    bytearray(10**15)


def flood(job):
    first(job)
    while True:
        os.write(1, b"x" * 65_536)


def talker(job):
    first(job)
    print("a" * 100_000, flush=True)  # noqa: T201
    print("the end of it")  # noqa: T201


def bomb(job):
    first(job)
    for _ in range(60):
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
    time.sleep(600)


def daemon(job):
    """Leaves a daemon behind, as daemons are made."""
    first(job)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()


class Unprintable(Exception):  # noqa: N818
    def __str__(self):
        raise ValueError("no")


def unprintable(job):
    first(job)
    raise Unprintable


def surrogate(job):
    first(job)
    raise ValueError("half a character \ud800")


def elsewhere(job):
    first(job)
    os.chdir("/")
    os.environ.clear()
    sys.path.clear()


def threads(job):
    first(job)
    for _ in range(5):
        threading.Thread(target=time.sleep, args=(600,)).start()


def large(job):
    """Finds far more than there is room for."""
    for k in range(1, 100_000):
        job.report(1 / k, time=k)


def leaves(job):
    first(job)
    sys.exit(3)


def leaves_well(job):
    first(job)
    sys.exit()


def gone(job):
    first(job)
    os._exit(0)


def closes(job):
    first(job)
    os.closerange(0, 1000)
    job.report(6.0, time=4)


def base(job):
    first(job)
    raise BaseException("all the way down")


def interrupted(job):
    first(job)
    raise KeyboardInterrupt


def garbage(job):
    first(job)
    return 42


def garbage_pairs(job):
    first(job)
    return [(4, "nothing")]


def nan(job):
    first(job)
    job.report(float("nan"), time=4)


def backwards(job):
    first(job)
    job.report(6.0, time=2)


def infinite_time(job):
    first(job)
    job.report(6.0, time=float("inf"))


def recursion(job):
    first(job)

    def deeper(n):
        return deeper(n + 1)

    deeper(0)


def killed(job):
    first(job)
    os.kill(os.getpid(), signal.SIGKILL)


def terminated(job):
    first(job)
    os.kill(os.getpid(), signal.SIGTERM)


def silent(_):
    return None


def sleeper(job):
    first(job)
    time.sleep(600)


def child_sleeper(job):
    """A process below a process, both asleep."""
    first(job)
    subprocess.run(["sleep", "600"], check=False)


def burner(job):
    first(job)
    while True:
        pass


def naps(job):
    time.sleep(0.02)
    job.report(job.rng.random() + job.instance, time=1)


def drawn(rng):
    """An instance."""
    return rng.random()
