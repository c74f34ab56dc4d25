"""`footnote table` asks the same questions of many documents, waits, and writes the answers as CSV."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from app.cli.progress import Bar
from app.cli.remote_collection import collection_id_of
from app.cli.usage import download_csv
from app.client import Client, connect
from app.errors import InvalidRequest, SetupError

_LOOK_S = 1.0


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command()(table)


def table(
    context: typer.Context,
    questions: Annotated[
        Path | None,
        typer.Argument(
            help="A text file with a question on each line, or `Name | question`.", exists=True, dir_okay=False
        ),
    ] = None,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="The documents of this collection (name or id).")
    ] = None,
    document: Annotated[list[str] | None, typer.Option(help="This document, by its id; repeat for more.")] = None,
    length: Annotated[str, typer.Option(help="How much each answer tells: short, normal or long.")] = "short",
    again: Annotated[
        str | None, typer.Option("--id", help="Go on with this table instead, and ask again what failed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the CSV here; default: standard output.")
    ] = None,
) -> None:
    """Ask the same questions of many documents, and write a CSV with a row for each document.

    The server goes on where this command is interrupted; `--id` comes back to it.
    """
    if (questions is None) == (again is None):
        raise SetupError("Give a file of questions, or --id with a table to go on with.")
    with connect(context.obj, with_models=True) as client:
        if questions is not None:
            body: dict[str, Any] = {"questions": columns_of(_text(questions)), "length": length}
            if collection is not None:
                body["collection_ids"] = [collection_id_of(client, collection)]
            if document:
                body["document_ids"] = document
            again = str(client.call("POST", "/v1/tables", json=body)["id"])
        else:
            client.call("POST", f"/v1/tables/{again}/resume")
        err = Console(stderr=True)
        err.print(f"Table {again}", highlight=False)
        with Bar(err) as show:
            found = filled(client, str(again), show)
        path = f"/v1/tables/{again}.csv"
        if out is None:
            download_csv(client, path, {}, sys.stdout.buffer)
        else:
            with out.open("wb") as file:
                download_csv(client, path, {}, file)
    err.print(summary(found), highlight=False, soft_wrap=True)
    if found["state"] == "stopped":
        raise SetupError(f"The table was stopped: {found['state_detail']} Go on with --id {again}.")


def columns_of(text: str) -> list[str | dict[str, str]]:
    """The columns of a file with a question on each line; an empty line is none.

    >>> columns_of("Law | Which law governs the agreement?")
    [{'name': 'Law', 'question': 'Which law governs the agreement?'}]
    """
    columns: list[str | dict[str, str]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, question = (part.strip() for part in line.partition("|"))
        columns.append({"name": name, "question": question} if name and question else line)
    return columns


def filled(
    client: Client,
    table_id: str,
    show: Callable[[str, int, int], object],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Any:
    """The table once it is finished or stopped; `show` is told how many cells are done."""
    while True:
        found = client.call("GET", f"/v1/tables/{table_id}", params={"limit": 1})
        progress = found["progress"]
        show("cells", progress["total"] - progress["waiting"] - progress["asking"], progress["total"])
        if found["state"] != "running":
            return found
        sleep(_LOOK_S)


def summary(found: Any) -> str:
    """The number of cells of each state, and what they cost, in one line."""
    states = ("answered", "unsure", "refused", "failed", "waiting")
    counts = ", ".join(f"{found['progress'][state]:,} {state}" for state in states if found["progress"][state])
    return f"{found['progress']['total']:,} cells: {counts}. {found['usage']['total_tokens']:,} tokens."


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not UTF-8.") from None
