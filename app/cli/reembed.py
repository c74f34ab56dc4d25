"""`footnote reembed`: changes the embedder and shows progress until the new vectors are in use."""

import time
from typing import Annotated, Any

import typer
from rich.console import Console

from app.cli.progress import Bar
from app.cli.remote_collection import pages
from app.client import Client, connect
from app.errors import SetupError

_POLL_SECONDS = 0.5


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command()(reembed)


def reembed(
    context: typer.Context,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Then delete the vectors of the embedder before; there is no way back.")
    ] = False,
) -> None:
    """Embed all documents again with the configured embedder, beside the vectors in use, and swap.

    A running server starts it automatically; with --url this shows its progress. Stopping the command does
    no harm: the next start continues.
    """
    with connect(context.obj, with_models=True) as client:
        watch(client, Console(), confirm=confirm)


def watch(client: Client, console: Console, *, confirm: bool) -> None:
    """Shows progress until no generation is being built; with `confirm`, then deletes the previous vectors.

    Raises:
        SetupError: The building makes no progress.
    """
    with Bar(console) as bar:
        active = _finished(client, bar)
    console.print(f"Searched by {active['model']}, generation {active['id']}.", highlight=False)
    previous = [item for item in _generations(client) if item["status"] == "previous"]
    if previous and confirm:
        client.call("POST", f"/v1/admin/generations/{active['id']}/confirm")
        with Bar(console) as bar:
            _until_deleted(client, bar, {item["id"] for item in previous})
        console.print("The vectors from before are deleted.")
    elif previous:
        console.print("The vectors from before are kept: `footnote reembed --confirm` deletes them.")


def _finished(client: Client, bar: Bar) -> dict[str, Any]:
    """The generation in use; None while another is being built."""
    while True:
        found = {item["status"]: item for item in _generations(client)}
        unfinished = found.get("building") or found.get("ready")
        if unfinished is None:
            return found["active"]  # a server with models has one
        progress = unfinished["progress"] or {"done": 0, "total": 0, "error": None}
        if progress["error"] is not None:
            raise SetupError(progress["error"])
        bar(f"embedding with {unfinished['model']}", progress["done"], progress["total"])
        time.sleep(_POLL_SECONDS)


def _until_deleted(client: Client, bar: Bar, going: set[int]) -> None:
    while left := sum(item["id"] in going and not item["purged"] for item in _generations(client)):
        bar("deleting the vectors from before", len(going) - left, len(going))
        time.sleep(_POLL_SECONDS)


def _generations(client: Client) -> list[dict[str, Any]]:
    return list(pages(client, "/v1/admin/generations", {"limit": 500}))
