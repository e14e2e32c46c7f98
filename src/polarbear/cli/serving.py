"""The command that shows a race in a browser while it runs: serve."""

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING

from polarbear.cli.options import STORE, add_file, command
from polarbear.cli.output import complain, without_password
from polarbear.errors import SolverError, require

if TYPE_CHECKING:
    import socket

LOOPBACK = ("127.0.0.1", "localhost")
_EVERYWHERE = ("0.0.0.0", "")  # noqa: S104 (it is what one refuses to be without a warning)


def add(commands: argparse._SubParsersAction) -> None:
    """Add this command."""
    parser = command(
        commands,
        "serve",
        "watch a race in a browser while it runs elsewhere",
        "Serves the report of a store, and updates it as the race proceeds. It only reads. "
        "Other machines cannot reach it unless --host says so.",
        takes="STORE",
        examples=("serve race.db --open", "serve postgresql://ann@host/database#night --port 9000"),
        run=_serve,
    )
    add_file(parser, "store", help=STORE)
    parser.add_argument(
        "--port", type=int, default=8765, help="port to listen at; 0 takes any free one (8765)"
    )
    parser.add_argument(
        "--host",
        default=LOOPBACK[0],
        metavar="ADDRESS",
        help="address of this machine to listen at (127.0.0.1, which others cannot reach)",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which browsers reach this machine; may be repeated",
    )
    parser.add_argument("--title", help="title of the report")
    parser.add_argument("--open", action="store_true", help="show the report in a browser")


def _serve(wanted: argparse.Namespace) -> int:
    uvicorn = require("uvicorn", extra="serve")
    from polarbear.live.connections import MAX_ACCEPTED, Connections, limited_protocol
    from polarbear.live.server import HEADERS, application
    from polarbear.live.snapshots import Snapshots

    snapshots = Snapshots(wanted.store, title=wanted.title)
    snapshots.latest()  # an error is said here, and not to the browser
    connections = Connections()
    config = uvicorn.Config(
        application(snapshots, _names(wanted), connections=connections, complain=complain),
        http=limited_protocol(connections, HEADERS),
        ws="none",
        lifespan="off",
        proxy_headers=False,
        backlog=MAX_ACCEPTED,
        host=wanted.host,
        port=wanted.port,
        log_level="error",  # a warning for each malformed request would fill a disk
        server_header=False,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    listening = _listening(wanted)
    shown = LOOPBACK[0] if wanted.host in _EVERYWHERE else wanted.host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    print(f"{without_password(wanted.store)} at {address} (Ctrl-C ends)", flush=True)
    if wanted.open:
        import webbrowser

        webbrowser.open(address)
    with suppress(KeyboardInterrupt):  # that is how one ends it
        uvicorn.Server(config).run(sockets=[listening])
    return 0


def _names(wanted: argparse.Namespace) -> list[str]:
    """The names by which browsers may ask for this server."""
    if wanted.host in LOOPBACK:
        return [*LOOPBACK, *wanted.allow]
    complain(
        f"note: whoever reaches {wanted.host or 'this machine'} can read this race; "
        "there is no password"
    )
    from socket import getfqdn, gethostname

    own = [gethostname(), getfqdn()] if wanted.host in _EVERYWHERE else [wanted.host]
    return [*LOOPBACK, *own, *wanted.allow]


def _listening(wanted: argparse.Namespace) -> "socket.socket":
    import socket

    from polarbear.live.connections import Listening

    where = Listening(socket.AF_INET, socket.SOCK_STREAM)
    where.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        where.bind((wanted.host, wanted.port))
        where.listen()  # from now on who comes early only has to wait
    except (OSError, OverflowError) as error:
        where.close()
        why = getattr(error, "strerror", None) or error
        raise SolverError(
            f"--host {wanted.host} --port {wanted.port}: {why}; --port 0 takes any that is free"
        ) from None
    return where
