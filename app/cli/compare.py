"""`footnote compare` prints what changed between two versions of a document, or between two documents."""

import json as json_text
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from app.client import Client, connect

_LIMIT = 500


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command()(compare)


def compare(
    context: typer.Context,
    document: Annotated[str, typer.Argument(help="Id of a document, as `footnote documents` shows it.")],
    other: Annotated[
        str | None, typer.Argument(help="Id of the document to compare with; default: its own version before.")
    ] = None,
    version: Annotated[int | None, typer.Option(min=1, help="The version to compare with.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Each change as a line of JSON.")] = False,
) -> None:
    """Compare two versions of a document, or two documents: what was added, removed, altered or moved."""
    console = Console()
    with connect(context.obj) as client:
        query = {"with": other, "version": version}
        for page in _pages(client, document, {name: value for name, value in query.items() if value is not None}):
            for change in page["data"]:
                if json:
                    print(json_text.dumps(change, ensure_ascii=False))
                else:
                    console.print(shown(change), soft_wrap=True)
            if not json and page["next_cursor"] is None:
                console.print(Text(summary(page)), soft_wrap=True)


def _pages(client: Client, document: str, query: dict[str, Any]) -> Iterator[Any]:
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = client.call("GET", f"/v1/documents/{document}/compare", params={**query, "limit": _LIMIT, **more})
        yield page
        cursor = page["next_cursor"]
        if cursor is None:
            return


def summary(page: Any) -> str:
    """The versions that were compared and the number of changes of each kind, in one line."""
    old, new = page["old"], page["new"]
    counts = ", ".join(f"{count:,} {kind}" for kind, count in page["counts"].items() if count) or "both are empty"
    other = "" if old["document_id"] == new["document_id"] else f"{old['document_id']} "
    return f"{other}version {old['version']} → {new['document_id']} version {new['version']}: {counts}."


def shown(change: Any) -> Text:
    """A change for a terminal: its kind, section and page, then its words marked as by wdiff, [-old-] {+new+}.

    A passage that was rewritten stands in both wordings, the old one above the new one.
    """
    side = change["new"] or change["old"]
    page = "" if side["page_start"] is None else f", p. {side['page_start']}"
    head = f"{change['kind']}{page}: {' › '.join(change['section'])}".rstrip(": ")
    text = Text(f"{head}\n", style="bold")
    lines = [change["words"] or [{"kind": change["kind"], "text": side["text"]}]]
    if change["kind"] == "altered" and _is_rewritten(change["words"]):
        lines = [[{"kind": kind, "text": change[key]["text"]}] for kind, key in (("removed", "old"), ("added", "new"))]
    for runs in lines:
        for run in runs:
            words = " ".join(run["text"].split())
            space = " " if run["text"][-1:].isspace() else ""
            match run["kind"]:
                case "removed":
                    text.append(f"[-{words}-]{space}", style="not bold red")
                case "added":
                    text.append(f"{{+{words}+}}{space}", style="not bold green")
                case _:
                    text.append(words + space, style="not bold")
        text.append("\n")
    return text


def _is_rewritten(runs: Any) -> bool:
    """Whether less than half of both wordings is the same: one line of such words cannot be read."""
    length = Counter[str]()
    for run in runs:
        length[run["kind"]] += len(run["text"])
    return min(length["removed"], length["added"]) > 0 and length["removed"] + length["added"] > 2 * length["equal"]
