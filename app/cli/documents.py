"""`footnote ingest` and `footnote documents`."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from app.cli.connection import Client, Refused, connect
from app.errors import SetupError

_FINAL = {"indexed", "failed"}
_IN_FLIGHT = 16  # uploads waited for at once, so that a folder of thousands does not flood the queue


def register(cli: typer.Typer) -> None:
    """Add the commands."""
    cli.command()(ingest)
    cli.command()(documents)


def ingest(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Files and folders; folders are walked.", exists=True)],
    collection: Annotated[str, typer.Option("--collection", "-c", help="Name or id; made if missing.")] = "default",
) -> None:
    """Upload files and wait until each is indexed or failed with a reason."""
    files = list(_walk(paths))
    if not files:
        raise SetupError("There are no files at these paths.")
    console = Console()
    outcomes: dict[str, list[tuple[str, str]]] = {"indexed": [], "duplicate": [], "failed": []}
    with connect(context.obj, with_models=True) as client, _progress(console) as progress:
        collection_id = collection_id_of(client, collection, make=True)
        task = progress.add_task("", total=len(files), name="starting")
        waiting: dict[str, Path] = {}

        def settle(path: Path, outcome: str, detail: str) -> None:
            outcomes[outcome].append((str(path), detail))
            progress.advance(task)

        for path in files:
            progress.update(task, name=path.name)
            try:
                document = _upload(client, path, collection_id)
            except Refused as error:
                settle(path, "failed", str(error))
                continue
            if document["duplicate_of"] and document["status"] == "indexed":
                settle(path, "duplicate", document["filename"])
            elif document["id"] in waiting:
                settle(path, "duplicate", waiting[document["id"]].name)
            else:
                waiting[document["id"]] = path
            while len(waiting) >= _IN_FLIGHT:
                _collect(client, waiting, settle)
        while waiting:
            _collect(client, waiting, settle)
    _report(console, outcomes)
    if outcomes["failed"]:
        raise typer.Exit(2)


def documents(
    context: typer.Context,
    collection: Annotated[str | None, typer.Option("--collection", "-c", help="Only in this collection.")] = None,
    status: Annotated[str | None, typer.Option(help="Only with this status, for example failed.")] = None,
) -> None:
    """List documents, newest first."""
    table = Table("id", "document", "status", "pages", "chunks", "tokens", "reason", box=None, pad_edge=False)
    with connect(context.obj) as client:
        params: dict[str, Any] = {"limit": 500}
        if status is not None:
            params["status"] = status
        if collection is not None:
            params["collection_id"] = collection_id_of(client, collection)
        for item in pages(client, "/v1/documents", params):
            counts, error = item["counts"], item["error"]
            table.add_row(
                item["id"],
                Text(item["filename"]),
                item["status"],
                str(counts["pages"] or ""),
                str(counts["chunks"]),
                str(counts["tokens"]),
                Text(error["detail"] if error else ""),
            )
    Console().print(table if table.row_count else "There are no documents.")


def pages(client: Client, path: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every item of a list, page by page."""
    cursor: str | None = None
    while True:
        page = client.call("GET", path, params={**params, **({"cursor": cursor} if cursor else {})})
        yield from page["data"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def collection_id_of(client: Client, name: str, *, make: bool = False) -> str:
    """The id of a collection by name or id.

    Raises:
        SetupError: There is none, and `make` is false.
    """
    for item in pages(client, "/v1/collections", {"limit": 500}):
        if name in {item["id"], item["name"]}:
            return str(item["id"])
    if not make:
        raise SetupError(f"There is no collection '{name}'.")
    return str(client.call("POST", "/v1/collections", json={"name": name})["id"])


def _walk(paths: list[Path]) -> Iterator[Path]:
    """Files at `paths`; folders in name order, hidden files left out."""
    for path in paths:
        if path.is_dir():
            yield from sorted(
                file
                for file in path.rglob("*")
                if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
            )
        else:
            yield path


def _upload(client: Client, path: Path, collection_id: str) -> dict[str, Any]:
    with path.open("rb") as file:
        result: dict[str, Any] = client.call(
            "POST", "/v1/documents", files={"file": (path.name, file)}, data={"collection_id": collection_id}
        )
    return result


def _collect(client: Client, waiting: dict[str, Path], settle: Any) -> None:
    """Look at every waiting document once; give the server time when none is finished."""
    finished = 0
    for document_id, path in list(waiting.items()):
        document = client.call("GET", f"/v1/documents/{document_id}")
        if document["status"] in _FINAL:
            del waiting[document_id]
            finished += 1
            if document["status"] == "failed":
                settle(path, "failed", document["error"]["detail"])
            else:
                settle(path, "indexed", f"{document['counts']['chunks']} chunks")
    if not finished:
        time.sleep(0.2)


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.fields[name]}", justify="left"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def _report(console: Console, outcomes: dict[str, list[tuple[str, str]]]) -> None:
    for path, detail in outcomes["failed"]:
        console.print(Text(f"failed  {path}: {detail}", style="red"))
    for path, detail in outcomes["duplicate"]:
        console.print(Text(f"skipped {path}: the same bytes as {detail}", style="dim"))
    console.print(
        f"{len(outcomes['indexed'])} indexed, {len(outcomes['duplicate'])} duplicates, {len(outcomes['failed'])} failed"
    )
