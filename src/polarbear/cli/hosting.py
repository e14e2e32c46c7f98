"""The command ``contributors``, and the part of ``serve`` that lets workers join over HTTP."""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polarbear.cli.answers import print_answer
from polarbear.cli.options import add_command, add_file_argument, add_json_option
from polarbear.cli.output import print_error
from polarbear.errors import DataError, SolverError

if TYPE_CHECKING:
    from polarbear.hub.hub_file import HubFile

HUB_HELP = "the hub file, in which jobs and results of workers over HTTP are kept"


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the command ``contributors`` to the parser."""
    parser = add_command(
        commands,
        "contributors",
        "give and revoke the tokens of workers that join a race over HTTP",
        "Without an option it lists contributors and workers. A token is printed once; the file "
        "has only its hash. A server that is running notices all changes.",
        positionals="HUB",
        examples=(
            "contributors race.hub --add ann > ann.token",
            "contributors race.hub --revoke ann",
        ),
        run=_run_contributors,
    )
    add_file_argument(parser, "hub", help=HUB_HELP)
    add = parser.add_argument
    add("--add", metavar="NAME", help="add a contributor, or replace its token; prints the token")
    add(
        "--role",
        default="contribute",
        help="contribute (default), audit (its results are trusted), submit (it also lets allowed "
        "algorithms join) or administer",
    )
    add("--days", type=float, default=365.0, help="days after which the token expires (365)")
    add("--quota", type=int, default=256, help="jobs that it may hold at once (256)")
    add("--revoke", metavar="NAME", help="revoke the token of a contributor")
    add("--release", metavar="WORKER", help="end the quarantine of a worker; restart the server")
    add_file_argument(
        parser,
        "--newcomers",
        metavar="RACE",
        help="allow that algorithms of this race file which do not race yet are submitted; prints "
        "their digests",
    )
    add_file_argument(
        parser,
        "--residuals",
        metavar="STORE",
        help="compare the runs of each worker with the posterior of the race; of a timed race, "
        "quarantine workers that deviate (restart the server)",
    )
    add("--log", action="store_true", help="print the last lines of the audit log")
    add_json_option(parser)


def add_hub_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the options for a race whose runs are made by workers over HTTP."""
    add_file_argument(
        parser, "--hub", metavar="FILE", help=f"{HUB_HELP}; `serve` has it beside the store"
    )
    parser.add_argument(
        "--audit",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of results that another worker makes again before they count (0.1)",
    )


def _run_contributors(arguments: argparse.Namespace) -> int:
    from polarbear.hub.hub_file import HubFile, make_log_entry
    from polarbear.hub.tokens import add_contributor, revoke_contributor

    hub = HubFile(arguments.hub)
    try:
        if arguments.add is not None:
            token = add_contributor(
                hub,
                arguments.add,
                role=arguments.role,
                days=arguments.days,
                quota=arguments.quota,
            )
            print_answer(arguments, token, {"contributor": arguments.add, "token": token})
        elif arguments.revoke is not None:
            revoke_contributor(hub, arguments.revoke)
        elif arguments.release is not None:
            sql = "UPDATE workers SET state = 'active' WHERE id = ?"
            entry = make_log_entry("operator", "release", arguments.release)
            hub.write([(sql, (arguments.release,)), entry])
        elif arguments.residuals is not None:
            _print_residuals(arguments, hub)
        elif arguments.newcomers is not None:
            _allow_newcomers(arguments, hub)
        else:
            _print_hub(arguments, hub)
    finally:
        hub.close()
    return 0


def _allow_newcomers(arguments: argparse.Namespace, hub: "HubFile") -> None:
    """Allow the algorithms of a race file that do not race yet, and print their digests."""
    from polarbear.running.solvers.configuration import load
    from polarbear.running.solvers.identity import identify

    solvers = identify(load(arguments.newcomers).setup).solvers
    fresh = hub.allow_newcomers({name: parts["content"] for name, parts in solvers.items()})
    lines = [f"{name}  {solvers[name]['content']}" for name in fresh] or ["none"]
    plain = {name: solvers[name]["content"] for name in fresh}
    print_answer(arguments, "\n".join(lines), {"allowed": plain})


def _print_residuals(arguments: argparse.Namespace, hub: "HubFile") -> None:
    """Print how the runs of each worker differ from the posterior; quarantine what deviates."""
    from polarbear.data.rankings import rank
    from polarbear.hub.hub_file import make_log_entry
    from polarbear.hub.residuals import measure_residuals
    from polarbear.inference.fit import fit
    from polarbear.store.opening import open_store

    with open_store(arguments.residuals, read_only=True) as store:
        runs, origins, times = store.runs(), store.origins(), store.times
    names = {number: details.get("worker", "") for number, details in origins.workers.items()}
    worker_of = {key[:2]: names.get(number, "") for key, number in origins.worker_of.items()}
    residuals = measure_residuals(
        rank(runs, times=times), fit(runs, times=times, draws=500), worker_of
    )
    is_timed = json.loads(hub.get("race") or "{}").get("clock") in ("wall", "cpu")
    for one in residuals:
        if one.is_deviating and is_timed:
            sql = "UPDATE workers SET state = 'quarantined' WHERE id = ?"
            entry = make_log_entry("operator", "quarantine", f"{one.worker}: its runs deviate")
            hub.write([(sql, (one.worker,)), entry])
    lines = [
        f"{one.worker}  {one.n_runs} runs  mean {one.mean:+.3f}  shift {one.shift:+.1f}  "
        f"noise {one.noise:+.1f}{'  deviates' if one.is_deviating else ''}"
        for one in residuals
    ]
    plain = [one._asdict() | {"deviates": one.is_deviating} for one in residuals]
    print_answer(arguments, "\n".join(lines) or "none", {"residuals": plain})


def _print_hub(arguments: argparse.Namespace, hub: "HubFile") -> None:
    """Print the audit log, or the contributors and their workers."""
    if arguments.log:
        sql = "SELECT at, actor, action, detail FROM log ORDER BY number DESC LIMIT 200"
        rows = [(_format_time(at), *rest) for at, *rest in hub.read(sql)][::-1]
        fields = ("at", "actor", "action", "detail")
    else:
        sql = (
            "SELECT name, role, contributors.state, expires, count(workers.id), "
            "total(workers.state = 'quarantined') FROM contributors LEFT JOIN workers ON "
            "workers.contributor = name GROUP BY name ORDER BY name"
        )
        fields = ("name", "role", "state", "expires", "workers", "quarantined")
        rows = [(*row[:3], _format_time(row[3]), row[4], int(row[5])) for row in hub.read(sql)]
    lines = ["  ".join(map(str, row)) for row in rows] or ["none"]
    plain = [dict(zip(fields, row, strict=True)) for row in rows]
    print_answer(arguments, "\n".join(lines), {"entries": plain})


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(min(seconds, 2e11), UTC).isoformat(timespec="seconds")


def read_token(path: str | None) -> str:
    """Return the token of a file, or of the environment variable ``POLARBEAR_TOKEN``."""
    if path is not None:
        return Path(path).read_text().strip()
    token = os.environ.get("POLARBEAR_TOKEN", "").strip()
    if not token:
        raise SolverError("a token is needed: pass --token-file, or set POLARBEAR_TOKEN")
    return token


def choose_hub_file(arguments: argparse.Namespace) -> str:
    """Return the path of the hub file: the given one, or one beside the store."""
    if arguments.hub is not None:
        return arguments.hub
    if "://" in arguments.store:
        raise DataError("the store is not a file: pass --hub FILE")
    return f"{arguments.store.removesuffix('.db')}.hub"


def make_hub_application(
    pages: Any, hub: str, arguments: argparse.Namespace, coordinator: "Coordinator"
) -> Any:
    """Return the application that serves pages to browsers, and jobs to workers."""
    from polarbear.hub.board import Policy
    from polarbear.hub.http_api import HubApi, route
    from polarbear.hub.service import HubService

    policy = Policy(heartbeat_seconds=arguments.heartbeat, lease_seconds=6 * arguments.heartbeat)
    service = HubService(hub, policy, is_over=coordinator.is_over)
    api = HubApi(service, complain=print_error, on_submit=coordinator.restart)
    return route(api, pages)


class Coordinator:
    """The process that decides: ``polarbear race`` with the hub file, which ends with this one."""

    def __init__(self, arguments: argparse.Namespace, hub: str) -> None:
        words = ["race", arguments.workers, "--store", arguments.store, "--hub", hub]
        options = ["--audit", str(arguments.audit), "--quiet"]
        self._command = [sys.executable, "-m", "polarbear", *words, *options]
        self._stop: Callable[[], object] = bool
        self._starts = threading.Lock()
        self.exit_code: int | None = None
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        from polarbear.running.solvers.processes import end_with_parent

        parent = os.getpid()
        return subprocess.Popen(  # noqa: S603 (this program, with the same arguments)
            self._command,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: end_with_parent(parent, signal.SIGTERM),
        )

    def is_over(self) -> bool:
        """Return whether the race has ended."""
        return self._process.poll() == 0

    def restart(self) -> None:
        """End the process and start it again, so that it reads the race file again."""

        def start_again() -> None:
            with self._starts:
                self._end()
                process = self._process = self._start()
            self._wait(process)  # the process ends with the thread that started it

        threading.Thread(target=start_again, daemon=True).start()

    @contextmanager
    def watched(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call ``stop`` if the coordinator fails; end the coordinator after the ``with`` block."""
        self._stop = stop
        threading.Thread(target=self._wait, args=(self._process,), daemon=True).start()
        try:
            yield
        finally:
            with self._starts:
                self._end()

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        if process.wait() not in (0, -signal.SIGTERM, 143):
            self.exit_code = 1
            self._stop()

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
