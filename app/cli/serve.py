"""`footnote serve` and `footnote migrate`."""

import os
import signal
from contextlib import nullcontext
from typing import Annotated

import typer
from rich.console import Console

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
        config = uvicorn.Config(
            app, host=settings.host, port=settings.port, log_config=None, access_log=False, timeout_graceful_shutdown=10
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            # uvicorn drains, then raises the signal again for whoever handled it before: by then the
            # work is done, and dying of it would skip the index's last save and the engine's goodbye.
            signal.signal(number, lambda *_: None)
        uvicorn.Server(config).run()


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
