"""`footnote documents` and `footnote delete`."""

import json
import sys
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.ingest import INTERRUPTED, report
from app.cli.mirror import Mirror
from app.cli.progress import progress_of
from app.cli.remote_collection import HttpCollection, RemoteDocument, collection_id_of, pages
from app.cli.retries import Patience
from app.cli.tally import Tally
from app.client import Client, Refused, connect
from app.errors import SetupError

_PATIENCE_S = 60.0
_SHOWN = 10


def register(cli: typer.Typer) -> None:
    """Add the commands."""
    cli.command()(documents)
    cli.command()(delete)


def documents(
    context: typer.Context,
    collection: Annotated[str | None, typer.Option("--collection", "-c", help="Only in this collection.")] = None,
    status: Annotated[str | None, typer.Option(help="Only with this status, for example failed.")] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try the failed ones again, and wait until each is indexed or has failed.")
    ] = False,
) -> None:
    """List documents, newest first, with the reason for each failure."""
    if retry and status not in {None, "failed"}:
        raise SetupError("Only failed documents can be tried again: use --status failed --retry.")
    with connect(context.obj, with_models=retry) as client:
        params: dict[str, Any] = {"limit": 500}
        if status is not None or retry:
            params["status"] = status or "failed"
        if collection is not None:
            params["collection_id"] = collection_id_of(client, collection)
        if retry:
            _retry(client, params)
            return
        table = Table("id", "document", "status", "pages", "chunks", "tokens", "reason", box=None, pad_edge=False)
        for item in pages(client, "/v1/documents", params):
            counts, error = item["counts"], item["error"]
            table.add_row(
                item["id"],
                Text(item["external_id"] or item["filename"]),
                item["status"],
                str(counts["pages"] or ""),
                str(counts["chunks"]),
                str(counts["tokens"]),
                Text(error["detail"] if error else ""),
            )
    Console().print(table if table.row_count else "There are no documents.")


def _retry(client: Client, params: dict[str, Any]) -> None:
    """Retries failed documents and waits for them; exit status 2 when some fail again."""
    failed = list(pages(client, "/v1/documents", params))
    console, tally = Console(), Tally()
    if not failed:
        console.print("No document has failed.")
        return
    try:
        with progress_of(console, each=False) as progress:
            patience = Patience(limit_s=_PATIENCE_S, say=progress.say)
            mirror = Mirror(HttpCollection(client, None), scope="", patience=patience, tally=tally, observer=progress)
            for item in failed:
                queued = patience(partial(_queue, client, item["id"]))
                if queued is not None:
                    mirror.track(queued, name=_named(item))
            mirror.drain()
    except KeyboardInterrupt:
        console.print("Stopped. What was queued is worked on by the server.")
        raise typer.Exit(INTERRUPTED) from None
    report(console, tally)
    if tally.failures:
        raise typer.Exit(2)


def _queue(client: Client, document_id: str) -> RemoteDocument | None:
    """Queues a document again; None when it was deleted or is no longer failed."""
    try:
        return RemoteDocument.of(client.call("POST", f"/v1/documents/{document_id}/retry"))
    except Refused as error:
        if error.status in {404, 409}:
            return None
        raise


def delete(
    context: typer.Context,
    ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of documents, as `footnote documents` shows them.")
    ] = None,
    filter: Annotated[  # noqa: A002 - the API's own word
        str | None, typer.Option(help='Instead of ids, a metadata filter as JSON: \'{"year": {"$lt": 2020}}\'.')
    ] = None,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="With --filter: only in this collection.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete documents permanently: original files, text and vectors of all versions."""
    if bool(ids) == (filter is not None):
        raise SetupError("Name documents by their ids, or by --filter; one of the two.")
    if collection is not None and filter is None:
        raise SetupError("--collection goes with --filter; ids need none.")
    if not yes and not sys.stdin.isatty():
        raise SetupError("There is nobody to ask: pass --yes.")
    condition = _condition(filter) if filter is not None else {}
    console = Console()
    with connect(context.obj) as client:
        scope = {"collection_id": collection_id_of(client, collection)} if collection is not None else {}
        if filter is not None:
            names = [_named(item) for item in pages(client, "/v1/documents", {"limit": 500, "filter": filter, **scope})]
        else:
            ids = list(dict.fromkeys(ids or ()))
            names = [_named(client.call("GET", f"/v1/documents/{document_id}")) for document_id in ids]
        if not names:
            console.print("No document matches.")
            return
        for name in names[:_SHOWN]:
            console.print(Text(name))
        if len(names) > _SHOWN:
            console.print(f"… and {len(names) - _SHOWN:,} more")
        if not yes and not typer.confirm(f"Delete {_counted(len(names))} for good?"):
            console.print("Nothing was deleted.")
            raise typer.Exit(1)
        if filter is not None:
            removed = [client.call("POST", "/v1/documents/delete", json={"filter": condition, **scope})]
        else:
            removed = [client.call("DELETE", f"/v1/documents/{document_id}") for document_id in ids or ()]
    gone = sum(body["documents"] for body in removed)
    chunks = sum(body["chunks_removed"] for body in removed)
    console.print(f"Deleted {_counted(gone)} with {chunks:,} chunks.")


def _condition(text: str) -> dict[str, Any]:
    try:
        condition = json.loads(text)
    except (ValueError, RecursionError):
        condition = None
    if not isinstance(condition, dict) or not condition:
        raise SetupError('--filter is a JSON object with at least one condition, for example {"year": 2019}.')
    return condition


def _named(body: dict[str, Any]) -> str:
    return f"{body['id']}  {body['external_id'] or body['filename']}"


def _counted(number: int) -> str:
    return f"{number:,} document" + ("" if number == 1 else "s")
