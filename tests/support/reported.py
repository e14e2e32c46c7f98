"""Subjects of reports, each with something else to show; tests and pictures of pages use them."""

import contextlib
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

import polarbear as pb
from polarbear.live.pace import Pace
from polarbear.live.status_document import describe_race_now, get_stage
from polarbear.reporting.content import make_document
from polarbear.reporting.page import render_document


def simulate(n, n_times=30, instances=60):
    """Fit rankings of ``n`` algorithms: a1 is the best at first, a2 later, an at no time."""
    share, rest = np.linspace(0, 1, n_times)[:, None], np.linspace(0.2, -3, n - 2)
    truth = np.concatenate([3 - 5 * share, 2.2 - 0 * share, rest + 0 * share], axis=1)
    times = np.geomspace(100, 10_000, n_times)
    rankings = pb.simulation.simulate_rankings(truth, instances, times=times, seed=1)
    return pb.fit(rankings, draws=1000)


def fit_classes():
    """Fit three classes of instances on which the best algorithms differ."""
    share = np.linspace(0, 1, 6)
    early, late, middle = 2 - 3 * share, 3 * share - 1, 0 * share
    kinds = [(early, late, middle), (middle - 1, early, late), (late, middle - 2, early)]
    truth = np.concatenate([np.repeat(np.stack(k, 1)[:, None], 40, 1) for k in kinds], axis=1)
    rankings = pb.simulation.simulate_rankings(truth, 120, times=np.geomspace(10, 1e4, 6))
    table = {"instance": rankings.instances, "kind": np.repeat(["easy", "hard", "odd"], 40)}
    return pb.fit(rankings.with_instance_data(table), classes="kind")


def fit_failing():
    """Fit runs of which the best algorithm's crashed in 20 of 50."""
    rng = np.random.default_rng(0)
    columns = {name: [] for name in ("algorithm", "instance", "time", "value", "status")}
    for instance in range(50):
        for k, name in enumerate(("quick", "steady", "slow")):
            for time in (1, 10, 100, 1000):
                value = k + rng.normal() - 5 * np.log10(time)
                status = "crashed" if k == 0 and instance < 20 else "cut"
                row = (name, f"i{instance}", time, value, status)
                for column, cell in zip(columns.values(), row, strict=True):
                    column.append(cell)
    return pb.fit(pb.Runs.from_frame(columns, direction="minimize", status="status"))


def replay_race(instances=60):
    """Race three algorithms, of which one is never the best."""
    truth = np.array([[2.0, 1.5, -2.0]] * 3)
    return pb.replay(pb.simulation.simulate_runs(truth, instances))


SUBJECTS = {
    "2": lambda: simulate(2),
    "7": lambda: simulate(7),
    "30": lambda: simulate(30, 8),
    "50": lambda: simulate(50, 50, 30),
    "failures": fit_failing,
    "classes": fit_classes,
    "race": replay_race,
}


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """The address of a server of a folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class LivePage:
    """The files of a live page, as ``polarbear serve`` answers them."""

    def __init__(self, folder, subject, status):
        self.folder, self.rounds = folder, []
        self.show(subject, status)
        self.write_page()

    def write_page(self):
        """Write the page as it is loaded from now on."""
        document = json.loads((self.folder / "data.json").read_text("utf-8"))
        (self.folder / "index.html").write_text(render_document(document, live=True), "utf-8")

    def show(self, subject, status, cells=None, certainty=None, **changes):
        """Write report and status as they are now."""
        document = make_document(subject, certainty=certainty)
        document |= {"stage": get_stage(status), "rounds": self.rounds}
        now = describe_race_now(status, Pace(), quiet=3.0, cells=cells) | changes
        self.write("data.json", document)
        self.write("status.json", now)

    def write(self, name, content):
        """Replace a file at once."""
        part = self.folder / f"{name}.partial"
        part.write_text(json.dumps(content), "utf-8")
        part.replace(self.folder / name)
