"""`footnote ask` and `footnote search`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.cli.answer_events import answer_events
from app.cli.quoted_answer import QuotedAnswer, footnotes, print_quotes
from app.cli.remote_collection import collection_id_of
from app.cli.usage_table import count
from app.client import Refused, connect

Collection = Annotated[str | None, typer.Option("--collection", "-c", help="Only in this collection (name or id).")]


def register(cli: typer.Typer) -> None:
    """Add the commands."""
    cli.command()(ask)
    cli.command()(search)


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="The question.")],
    collection: Collection = None,
    top_k: Annotated[int, typer.Option(help="Chunks to retrieve.")] = 8,
    max_output_tokens: Annotated[int | None, typer.Option(help="Most tokens to generate.")] = None,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    seed: Annotated[int | None, typer.Option(help="Makes a sampled answer reproducible.")] = None,
    length: Annotated[str, typer.Option(help="How much is told: short, normal or long.")] = "normal",
) -> None:
    """Ask your documents. The answer streams; its footnotes follow with file, page and quoted passage."""
    console = Console(highlight=False)
    with connect(context.obj, with_models=True) as client:
        body: dict[str, Any] = {
            "question": question,
            "top_k": top_k,
            "temperature": temperature,
            "seed": seed,
            "max_output_tokens": max_output_tokens,
            "length": length,
            "stream": True,
        }
        if collection is not None:
            body["collection_ids"] = [collection_id_of(client, collection)]
        citations: list[dict[str, Any]] = []
        usage: dict[str, Any] = {}
        answer = QuotedAnswer(console)
        for event, data in answer_events(client, body):
            match event:
                case "quotes":
                    print_quotes(console, data)
                case "delta":
                    answer.feed(data["text"], part=data.get("part"))
                case "citation":
                    citations.append(data)
                case "usage":
                    usage = data
                case "error":
                    raise Refused(data["detail"])
                case "done":
                    answer.finish(data)
                    _footnotes(console, citations, data)
                    _bill(console, usage, data)


def _footnotes(console: Console, citations: list[dict[str, Any]], done: dict[str, Any]) -> None:
    shown: set[tuple[str, int, int]] = set()
    for citation, doubt in footnotes(citations, done):
        passage = (citation["document_id"], citation["start_char"], citation["end_char"])
        if passage in shown:
            continue  # the lead and its quote open the same passage
        shown.add(passage)
        page = f", page {citation['page_start']}" if citation["page_start"] is not None else ""
        if citation.get("sheet") is not None:
            page = f", sheet {' '.join(citation['sheet'].split())}"
        if citation.get("cell") is not None:
            page += f", {citation['cell']}"
        said = f"  ({doubt})" if doubt else ""
        quoted = " ".join(citation["cited_text"].split())
        console.print()
        console.print(Text(f"[{citation['index']}] {citation['filename']}{page}{said}", style="bold"))
        console.print(Padding(Text(f"“{quoted}”", style="italic"), (0, 0, 0, 4)))


def _bill(console: Console, usage: dict[str, Any], done: dict[str, Any]) -> None:
    console.print()
    if not done["answered"]:
        unsure = done["reason"] == "unsure"
        said = "Not clearly answered." if unsure else f"Not answered: {str(done['reason']).replace('_', ' ')}."
        console.print(Text(said, style="yellow"))
    console.print(
        Text(
            f"{tokens_text(usage)} · {done['timings_ms']['total'] / 1000:.1f} s",
            style="dim",
        )
    )


_PARTS = {
    "context": "context",
    "question": "question",
    "history": "history",
    "completion": "answer",
    "embedding": "embedding",
    "reading": "reading",
    "rewriting": "rewriting",
    "verification": "verification",
}
_FRAME = ("system", "template")


def tokens_text(usage: Mapping[str, Any]) -> str:
    """The bill in a line: `3,194 tokens read (12 embedding, 3,182 reading)`, and those written where there are any."""
    if not usage["total_tokens"]:
        return "no model was called"
    parts = usage["components"]
    amounts = {name: parts[part] for part, name in _PARTS.items()} | {"frame": sum(parts[part] for part in _FRAME)}
    told = ", ".join(f"{count(tokens)} {name}" for name, tokens in amounts.items() if tokens)
    written = f" and {count(usage['completion_tokens'])} written" if usage["completion_tokens"] else ""
    return f"{count(usage['prompt_tokens'])} tokens read{written} ({told})"


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    collection: Collection = None,
    top_k: Annotated[int, typer.Option(help="Most hits.")] = 8,
    mode: Annotated[str, typer.Option(help="hybrid, dense or lexical.")] = "hybrid",
) -> None:
    """Find passages without generating an answer."""
    with connect(context.obj, with_models=True) as client:
        body: dict[str, Any] = {"query": query, "top_k": top_k, "mode": mode}
        if collection is not None:
            body["collection_ids"] = [collection_id_of(client, collection)]
        hits = client.call("POST", "/v1/search", json=body)["data"]
    table = Table("score", "document", "page", "passage", box=None, pad_edge=False)
    for hit in hits:
        passage = " ".join(hit["text"].split())
        shown = passage if len(passage) <= 200 else passage[:199] + "…"
        page = str(hit["page_start"]) if hit["page_start"] is not None else ""
        table.add_row(f"{hit['scores']['fused']:.4f}", Text(hit["filename"]), page, Text(shown))
    Console().print(table if hits else "Nothing found.")
