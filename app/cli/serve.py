"""`footnote serve` and `footnote migrate`."""

import os
import signal
import socket
from contextlib import nullcontext
from typing import Annotated

import typer
from rich.console import Console

from app.errors import SetupError
from app.settings import Settings, load_settings

_KEYED_BY_ENVIRONMENT = "Settings come from FOOTNOTE_* variables or .env; see .env.example."


def register(cli: typer.Typer) -> None:
    """Add the commands."""
    cli.command(epilog=_KEYED_BY_ENVIRONMENT)(serve)
    cli.command()(migrate)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
) -> None:
    """Start the server."""
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    run(load_settings(**given))


def run(settings: Settings) -> None:
    """Serve until told to stop; the data dir, the models and the port are checked first, in that order."""
    import uvicorn

    from app.bootstrap import build
    from app.main import create_app
    from app.telemetry import configure_logging

    configure_logging(level=settings.log_level, json=settings.log_format == "json")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with build(settings) as state:
        app = create_app(lambda: nullcontext(state), version=state.version)
        # h11 refuses headers above 64 KiB; httptools would take them without end, before any key is checked
        config = uvicorn.Config(app, http="h11", log_config=None, access_log=False, timeout_graceful_shutdown=10)
        for number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn drains, then raises the signal again for whoever handled it before: by then the
            # work is done, and dying of it would skip the index's last save and the engine's goodbye.
            signal.signal(number, lambda *_: None)
        uvicorn.Server(config).run(sockets=[_listen(settings)])


def _listen(settings: Settings) -> socket.socket:
    """The bound socket, announced; requests that come before the server reads them wait in its backlog.

    Raises:
        SetupError: The address cannot be bound.
    """
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise SetupError(f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}.") from None
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{listener.getsockname()[1]}"
    Console(stderr=True).print(f"Footnote listens on {address}, its API is described at {address}/docs", soft_wrap=True)
    return listener


def migrate() -> None:
    """Bring the database to the newest schema."""
    from app.db.migration import current_revision, head_revision, upgrade
    from app.db.session import Database
    from app.lock import data_dir_lock

    settings = load_settings()
    with data_dir_lock(settings.data_dir):
        database = Database.open(settings.resolved_database_url)
        try:
            before = current_revision(database)
            upgrade(database)
        finally:
            database.close()
    Console().print(f"Schema: {before or 'empty'} → {head_revision()}")
