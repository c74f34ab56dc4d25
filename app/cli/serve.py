"""`footnote serve`, `footnote worker` and `footnote migrate`."""

import os
import secrets
import socket
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from app.errors import SetupError

if TYPE_CHECKING:
    from app.settings import ServerSettings, Settings

_KEYED_BY_ENVIRONMENT = "Settings come from FOOTNOTE_* variables or .env; see .env.example."


def register(cli: typer.Typer) -> None:
    """Add the commands."""
    cli.command(epilog=_KEYED_BY_ENVIRONMENT)(serve)
    cli.command(epilog=_KEYED_BY_ENVIRONMENT)(worker)
    cli.command()(migrate)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
) -> None:
    """Start the server."""
    from app.settings import load_settings

    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    run(load_settings(**given))


def worker(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
) -> None:
    """Ingest documents beside other processes; answers /healthz, /readyz and /metrics alone."""
    from app.settings import load_settings

    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    run(load_settings(role="worker", **given))


def run(settings: "Settings") -> None:
    """Serves until a signal arrives. Locks the data directory and binds the address first; models load while it serves.

    Raises:
        SetupError: The data dir, the database, the address, the certificate or a model will not do.
        RetrievalError, GenerationError: A model cannot be used.
    """
    import torch  # noqa: F401 - it holds the interpreter for a second: better now than while requests are served

    from app.api.application import create_app
    from app.local_server import LocalServer, announced
    from app.server.bootstrap import build_loading
    from app.server.drain import Drain
    from app.server.http_server import Server, configuration
    from app.server.process import forbid_core_dumps, notify
    from app.server.sharing import of_worker
    from app.telemetry.logs import configure_logging

    configure_logging(level=settings.log_level, json=settings.log_format == "json")
    forbid_core_dumps()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    drain, console = Drain(seconds=settings.drain_s), Console(stderr=True)

    def ready() -> None:
        notify("READY=1")
        console.print("Footnote is ready.")

    secret = secrets.token_urlsafe(32)
    settings = of_worker(settings) if settings.role == "worker" else settings
    with build_loading(
        settings, on_ready=ready, on_failure=lambda: drain.begin(at_once=True), local_secret=secret
    ) as state:
        app = create_app(
            lambda: nullcontext(state),
            version=state.serving.version,
            root_path=settings.root_path,
            drain=drain,
            operations_only=settings.role == "worker",
        )
        loading = state.serving.loading
        assert loading is not None, "models load while it serves"
        server = Server(configuration(app, settings), drain, state=lambda: state, listening=loading.start)
        listener = _listen(settings, console)
        certificate = None if settings.tls_cert is None else str(settings.tls_cert)
        here = LocalServer(settings.address(port=listener.getsockname()[1]), secret, certificate)
        with announced(here, settings.data_dir):
            server.run(sockets=[listener])
        if loading.failure is not None:
            raise loading.failure


def _listen(settings: "ServerSettings", console: Console) -> socket.socket:
    """Binds and announces the socket; early requests wait in its backlog.

    Raises:
        SetupError: The address cannot be bound.
    """
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise SetupError(f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}.") from None
    address = settings.address(port=listener.getsockname()[1])
    if settings.role == "worker":
        console.print(f"Footnote ingests; {address}/readyz says whether it can.", soft_wrap=True)
        return listener
    console.print(f"Footnote listens on {address}, its API is described at {address}/docs", soft_wrap=True)
    console.print("It answers questions when its models are loaded; /readyz says how far that is.")
    return listener


def migrate() -> None:
    """Upgrade the database to the newest schema."""
    from app.backup.data_dir import data_dir_lock
    from app.db.migration import current_revision, head_revision, upgrade
    from app.db.server_lock import server_lock
    from app.db.session import Database
    from app.settings import load_settings

    settings = load_settings()
    with data_dir_lock(settings.data_dir):
        database = Database.open(settings.resolved_database_url)
        try:
            before = current_revision(database)
            with server_lock(database):
                copy = upgrade(database, copies=settings.data_dir / "backups")
        finally:
            database.close()
    Console().print(f"Schema: {before or 'empty'} → {head_revision()}")
    if copy is not None:
        Console().print(f"A copy from before is {copy.name} in the data dir's folder {copy.parent.name}.")
