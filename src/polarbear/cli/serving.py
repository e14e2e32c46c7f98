"""The command ``serve``, which shows a running race in a browser."""

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING

from polarbear.cli.options import STORE_HELP, Subcommand
from polarbear.cli.output import hide_passwords, print_error
from polarbear.errors import DataError, require

if TYPE_CHECKING:
    import socket

LOOPBACK_HOSTS = ("127.0.0.1", "localhost")
_WILDCARD_HOSTS = ("0.0.0.0", "")  # noqa: S104 (they cause a warning to the user)


def _add_serve_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", help=STORE_HELP)
    parser.add_argument(
        "--port", type=int, default=8765, help="port to listen on; 0 takes a free one (8765)"
    )
    parser.add_argument(
        "--host",
        default=LOOPBACK_HOSTS[0],
        metavar="ADDRESS",
        help="address to listen on (127.0.0.1, which other machines cannot reach)",
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


def _run_serve(arguments: argparse.Namespace) -> int:
    uvicorn = require("uvicorn", extra="serve")
    from polarbear.live.connections import MAX_ACCEPTED, Connections, make_limited_protocol
    from polarbear.live.server import HEADERS, make_application
    from polarbear.live.snapshots import Snapshots

    snapshots = Snapshots(arguments.store, title=arguments.title)
    snapshots.latest()  # raises an error here rather than in the browser
    connections = Connections()
    application = make_application(
        snapshots, _list_allowed_hosts(arguments), connections=connections, complain=print_error
    )
    listener = _open_socket(arguments)
    config = uvicorn.Config(
        application,
        http=make_limited_protocol(connections, HEADERS),
        ws="none",
        lifespan="off",
        proxy_headers=False,
        backlog=MAX_ACCEPTED,
        host=arguments.host,
        port=arguments.port,
        log_level="error",  # a warning for each malformed request would fill a disk
        server_header=False,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    host = LOOPBACK_HOSTS[0] if arguments.host in _WILDCARD_HOSTS else arguments.host
    address = f"http://{host}:{listener.getsockname()[1]}/"
    print(f"{hide_passwords(arguments.store)} at {address} (Ctrl-C ends)", flush=True)
    if arguments.open:
        import webbrowser

        webbrowser.open(address)
    with suppress(KeyboardInterrupt):  # the usual way to end the server
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def _list_allowed_hosts(arguments: argparse.Namespace) -> list[str]:
    """List the host names under which browsers may address this server."""
    if arguments.host in LOOPBACK_HOSTS:
        return [*LOOPBACK_HOSTS, *arguments.allow]
    print_error(
        f"note: everyone with access to {arguments.host or 'this machine'} can read this race; "
        "there is no password"
    )
    from socket import getfqdn, gethostname

    own = [gethostname(), getfqdn()] if arguments.host in _WILDCARD_HOSTS else [arguments.host]
    return [*LOOPBACK_HOSTS, *own, *arguments.allow]


def _open_socket(arguments: argparse.Namespace) -> "socket.socket":
    """Open the socket on which the server listens."""
    import socket

    from polarbear.live.connections import ListeningSocket

    # asyncio sends small answers at once (TCP_NODELAY) only if the protocol is stated; otherwise an
    # answer on a kept connection takes 40 ms longer.
    listener = ListeningSocket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((arguments.host, arguments.port))
        listener.listen()  # earlier requests wait until the server runs
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"--host {arguments.host} --port {arguments.port}: {reason}; --port 0 takes a free port"
        ) from None
    return listener


COMMANDS = (
    Subcommand(
        "serve",
        "watch a race in a browser while it runs",
        "Serves the report of a store, and updates it as the race proceeds. It only reads. "
        "Other machines cannot reach it unless --host says so.",
        positionals="STORE",
        examples=("serve race.db --open", "serve postgresql://ann@host/database#night --port 9000"),
        run=_run_serve,
        add_options=_add_serve_options,
    ),
)
