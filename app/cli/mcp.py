"""`footnote mcp`: gives assistants search and questions through the Model Context Protocol."""

import logging
from contextlib import closing, nullcontext
from importlib.metadata import version
from typing import Annotated

import anyio
import httpx
import typer
from rich.console import Console

from app.client import Client, connect
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
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port for --http; 0 is one that is free.")] = 8090,
    http_key: Annotated[
        str | None,
        typer.Option(
            envvar="FOOTNOTE_MCP_KEY",
            help="With --http: what assistants must send as a bearer token; default: none is asked for.",
        ),
    ] = None,
) -> None:
    """Let an assistant search and ask through the Model Context Protocol.

    With --url a running server is asked, else the data dir is opened. Standard output carries the protocol alone, the
    log goes to standard error.
    """
    try:
        from app.mcp.listener import address_of, listen, serve
        from app.mcp.server import create_server
    except ModuleNotFoundError:
        raise SetupError("`footnote mcp` needs the extra `mcp`: pip install 'footnote-rag[mcp]'.") from None
    from app.telemetry.logs import configure_logging

    if http_key is not None and not http_key.strip():
        raise SetupError("The key for --http is empty.")
    settings = load_settings()
    configure_logging(level=settings.log_level, json=settings.log_format == "json")
    with (
        closing(listen(port)) if http else nullcontext() as listener,
        connect(context.obj, with_models=True, settings=settings) as client,
    ):

        async def run() -> None:
            async with _asynchronous(client) as speaking:
                server = create_server(speaking, version=version("footnote-rag"))
                # again: the package's server configures the root logger itself
                configure_logging(level=settings.log_level, json=settings.log_format == "json")
                if listener is not None:
                    _announce(address_of(listener), keyed=http_key is not None)
                    await serve(server, listener, key=http_key)
                else:
                    await server.run_stdio_async()

        logging.captureWarnings(True)
        anyio.run(run)


def _announce(address: str, *, keyed: bool) -> None:
    console = Console(stderr=True)
    console.print(f"Assistants find it at {address}", soft_wrap=True)
    if not keyed:
        console.print("It asks for no key: whoever reaches that port reads what its own key reads.", soft_wrap=True)


def _asynchronous(client: Client) -> httpx.AsyncClient:
    """An asynchronous client with the same address and headers, whose calls can be cancelled."""
    return httpx.AsyncClient(
        base_url=client.http.base_url,
        headers={"Authorization": client.http.headers["Authorization"]},
        timeout=client.http.timeout,
        trust_env=False,
    )
