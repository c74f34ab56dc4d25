"""`footnote mcp`: search and ask for assistants, by the Model Context Protocol."""

import logging
from importlib.metadata import version
from typing import Annotated

import anyio
import httpx
import typer

from app.cli.connection import Client, connect
from app.errors import SetupError
from app.settings import load_settings


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command()(mcp)


def mcp(
    context: typer.Context,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP on the loopback interface instead of stdio.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port for --http.")] = 8090,
) -> None:
    """Let an assistant search and ask, by the Model Context Protocol.

    With --url a running server is asked, else the data dir is opened. Standard output carries the protocol alone, the
    log goes to standard error.
    """
    try:
        from app.mcp.server import create_server
    except ModuleNotFoundError:
        raise SetupError("`footnote mcp` needs the extra `mcp`: pip install 'footnote-rag[mcp]'.") from None
    from app.telemetry import configure_logging

    settings = load_settings()
    configure_logging(level=settings.log_level, json=settings.log_format == "json")
    with connect(context.obj, with_models=True, settings=settings) as client:

        async def run() -> None:
            async with _asynchronous(client) as speaking:
                server = create_server(speaking, version=version("footnote-rag"))
                # again: the package's server sets the root logger up as it likes
                configure_logging(level=settings.log_level, json=settings.log_format == "json")
                if http:
                    await server.run_streamable_http_async(port=port)
                else:
                    await server.run_stdio_async()

        logging.captureWarnings(True)
        anyio.run(run)


def _asynchronous(client: Client) -> httpx.AsyncClient:
    """A client that says the same to the same server, and whose calls can be cancelled."""
    return httpx.AsyncClient(
        base_url=client.http.base_url,
        headers={"Authorization": client.http.headers["Authorization"]},
        timeout=client.http.timeout,
        trust_env=False,
    )
