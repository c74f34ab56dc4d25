"""`footnote usage` and its subcommands `report`, `top-documents`, `events` and `reconcile`."""

import re
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, BinaryIO, Literal, TypeAlias
from zoneinfo import ZoneInfo

import httpx
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.usage_table import (
    Sum,
    Whole,
    answers_text,
    count,
    foot,
    money_text,
    named,
    numbers_table,
    price_hint,
    report_table,
)
from app.client import Client, Refused, connect, refused
from app.usage.rollups.zones import zone_named

commands = typer.Typer(
    help="Reports of tokens and costs, by user, key, model and document.", invoke_without_command=True
)

Report: TypeAlias = Literal["all", "completions", "embeddings", "rerank", "judge", "costs"]

_Last = Annotated[str, typer.Option("--last", help="How far back, this one included: 12h, 30d, 4w or 3mo.")]
_Zone = Annotated[str | None, typer.Option(help="IANA zone of days and months; default: the server's.")]
_Csv = Annotated[bool, typer.Option("--csv", help="Every number of the API, as a file to standard output.")]

_WORDS = {
    "user": "user_id",
    "key": "api_key_id",
    "collection": "project_id",
    "project": "project_id",
    "document": "document_id",
    "item": "line_item",
}
_PATHS = {"all": "/v1/admin/usage", "costs": "/v1/admin/costs"}
_ORDERS = {
    "cost": "cost",
    "retrieved": "num_retrieved",
    "cited": "num_cited",
    "context": "context_tokens",
    "ingest": "ingest_tokens",
}


@commands.callback()
def usage(
    context: typer.Context,
    by: Annotated[str, typer.Option(help="Comma-separated, as of `report`.")] = "user,model",
    days: Annotated[int, typer.Option(min=1, max=3660, help="How many days back, today included.")] = 30,
) -> None:
    """Show the tokens of all models by day, or run a subcommand."""
    if context.invoked_subcommand is None:
        with connect(context.obj) as client:
            show_report(client, Console(), by=by, period=f"{days}d", width="1d")


@commands.command()
def report(
    context: typer.Context,
    of: Annotated[Report, typer.Option(help="Which calls; all: of every model, for questions and documents.")] = "all",
    by: Annotated[
        str,
        typer.Option(
            help="Comma-separated: user, key, model, collection, operation, status; of costs also item or document."
        ),
    ] = "user,model",
    last: _Last = "30d",
    tz: _Zone = None,
    width: Annotated[
        Literal["15m", "1h", "1d", "1mo"] | None, typer.Option(help="A row a group and bucket; default: a row a group.")
    ] = None,
    csv: _Csv = False,
) -> None:
    """Report tokens and costs by group, most expensive first."""
    with connect(context.obj) as client:
        if csv:
            params = report_params(client, by=by, period=last, tz=tz, width=width or "1d")
            download_csv(client, _path(of), params, sys.stdout.buffer)
        else:
            show_report(client, Console(), of=of, by=by, period=last, tz=tz, width=width)


@commands.command("top-documents")
def top_documents(
    context: typer.Context,
    by: Annotated[
        Literal["cost", "retrieved", "cited", "context", "ingest"], typer.Option(help="What to sort by.")
    ] = "cost",
    last: _Last = "30d",
    tz: _Zone = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 20,
    least: Annotated[bool, typer.Option("--least", help="The least first: what nobody reads.")] = False,
    never_cited: Annotated[bool, typer.Option("--never-cited", help="Only those that no answer cites.")] = False,
    csv: _Csv = False,
) -> None:
    """Report what documents cost to embed and to read, and how many answers cite them."""
    with connect(context.obj) as client:
        params = document_params(_range(client, last, tz), by=by, least=least, never_cited=never_cited)
        if csv:
            download_csv(client, "/v1/admin/usage/documents", params, sys.stdout.buffer)
        else:
            show_documents(client, Console(), {**params, "limit": limit})


@commands.command()
def events(
    context: typer.Context,
    last: _Last = "1h",
    tz: _Zone = None,
    user: Annotated[str | None, typer.Option(help="Only this user.")] = None,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    status: Annotated[str | None, typer.Option(help="Only calls that ended so, or adjustment.")] = None,
    request: Annotated[str | None, typer.Option(help="Only this request.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 100,
    csv: _Csv = False,
) -> None:
    """List settled calls, oldest first."""
    with connect(context.obj) as client:
        start, end = _range(client, last, tz)
        given = {"tz": tz, "user_ids": user, "models": model, "statuses": status, "request_id": request}
        params: dict[str, Any] = {"start_time": start, "end_time": end}
        params |= {name: value for name, value in given.items() if value is not None}
        if csv:
            download_csv(client, "/v1/admin/usage/events", params, sys.stdout.buffer)
        else:
            show_events(client, Console(), {**params, "limit": limit})


@commands.command()
def reconcile(
    context: typer.Context,
    last: Annotated[str, typer.Option("--last", help="How far back: 12h, 30d, 4w, 3mo or all.")] = "2d",
) -> None:
    """Compare the ledger with the engine's counters, the rollups and the budgets; exit status 1 when they differ."""
    with connect(context.obj) as client:
        start = 0 if last == "all" else _range(client, last, None)[0]
        agrees = show_reconciliation(client, Console(), {"start_time": start})
    if not agrees:
        raise typer.Exit(1)


def show_report(
    client: Client,
    console: Console,
    *,
    of: Report = "all",
    by: str,
    period: str,
    tz: str | None = None,
    width: str | None = None,
) -> None:
    """Prints a report, with one row per group, and per bucket where `width` is given.

    Above the report of all calls stands the number of answers, below it what calls without a price might cost.
    """
    params = report_params(client, by=by, period=period, tz=tz, width=width or "1mo")
    table = report_table(_buckets(client, _path(of), params), of=of, by=params["group_by"], width=width)
    if of == "all":
        whole = _whole(client, params)
        console.print(answers_text(whole))
        if table is not None:
            console.print(table)
        if (hint := price_hint(whole)) is not None:
            console.print(hint)
        return
    console.print(table or "Nothing was spent.")


def show_documents(client: Client, console: Console, params: dict[str, Any]) -> None:
    """Prints a page of documents and their totals."""
    found = client.call("GET", "/v1/admin/usage/documents", params=params)["data"]
    if not found:
        console.print("There are no such documents." if "cited" in params else "There are no documents.")
        return
    names = ("num_retrieved", "num_cited", "num_citations", "context_tokens", "ingest_tokens")
    headings = ("retrieved", "cited", "citations", "context", "ingest")
    table = numbers_table(("document", "id"), headings, found[0]["cost"]["currency"])
    total = Sum([None] * len(names))
    for one in found:
        numbers, cost = [one[name] for name in names], one["cost"]["value"]
        cost = None if cost is None else Decimal(cost)
        total.add(numbers, cost)
        table.add_row(Text(named(one["name"])), one["document_id"], *map(count, numbers), money_text(cost))
    foot(table, total, texts=2)
    console.print(table)


def show_events(client: Client, console: Console, params: dict[str, Any]) -> None:
    """Print a page of the raw ledger."""
    page = client.call("GET", "/v1/admin/usage/events", params=params)
    if not page["data"]:
        console.print("Nothing was settled.")
        return
    texts = ("settled", "operation", "status", "user", "model", "request")
    names = ("input_tokens", "output_tokens")
    table = numbers_table(texts, ("input", "output"), page["data"][0]["cost"]["currency"])
    total = Sum([None] * len(names))
    for line in page["data"]:
        numbers = [line[name] for name in names]
        cost = None if line["cost"]["value"] is None else Decimal(line["cost"]["value"])
        total.add(numbers, cost)
        settled = line["settled_local"][:19].replace("T", " ")
        who = (Text(named(line[name])) for name in ("user_id", "model", "request_id"))
        table.add_row(settled, line["operation"], line["status"], *who, *map(count, numbers), money_text(cost))
    foot(table, total, texts=len(texts))
    console.print(table)
    if page["has_more"]:
        console.print("There are more: --limit shows up to 1000, --csv all.")


def show_reconciliation(client: Client, console: Console, params: dict[str, Any]) -> bool:
    """Prints every comparison and returns whether all agree."""
    found = client.call("GET", "/v1/admin/usage/reconciliation", params=params)
    table = Table("check", "", box=None, pad_edge=False)
    for name in ("expected", "found"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for check in found["checks"]:
        verdict = Text("agrees", "green") if check["ok"] else Text("differs", "bold red")
        numbers = (count(check[side]) for side in ("expected", "found"))
        table.add_row(check["name"], verdict, *numbers, Text(check["detail"]))
    console.print(table)
    console.print("The books agree." if found["ok"] else "The books do not agree.")
    return bool(found["ok"])


def report_params(client: Client, *, by: str, period: str, tz: str | None, width: str) -> dict[str, Any]:
    """Turns command-line options into the query parameters of a report."""
    start, end = _range(client, period, tz)
    groups = [part.strip() for part in by.split(",") if part.strip()]
    params: dict[str, Any] = {
        "start_time": start,
        "end_time": end,
        "bucket_width": width,
        "group_by": [_WORDS.get(group, group) for group in dict.fromkeys(groups)],
    }
    return params if tz is None else {**params, "tz": tz}


def document_params(span: tuple[int, int], *, by: str, least: bool, never_cited: bool) -> dict[str, Any]:
    """Turns command-line options into the query parameters of the documents report; `span` is in Unix seconds."""
    order = {"order_by": _ORDERS[by], "order": "asc" if least else "desc"}
    params = {"start_time": span[0], "end_time": span[1], **order}
    return {**params, "cited": "false"} if never_cited else params


def _range(client: Client, period: str, tz: str | None) -> tuple[int, int]:
    zone = ZoneInfo(client.call("GET", "/v1/usage")["tz"]) if tz is None else zone_named(tz)
    return last_period(period, zone, time.time())


def _buckets(client: Client, path: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    token: str | None = None
    while True:
        page = client.call("GET", path, params=params if token is None else {**params, "page": token})
        yield from page["data"]
        token = page["next_page"]
        if token is None:
            return


def _whole(client: Client, params: dict[str, Any]) -> Whole:
    """The sums of a report over its whole range."""
    ungrouped = {**params, "group_by": [], "bucket_width": "1mo"}
    return Whole.of(result for bucket in _buckets(client, _PATHS["all"], ungrouped) for result in bucket["results"])


def _path(of: Report) -> str:
    return _PATHS.get(of, f"/v1/admin/usage/{of}")


_PERIOD = re.compile(r"([1-9][0-9]{0,4})(h|d|w|mo)")
_MOST_DAYS = 36_600


def last_period(period: str, zone: ZoneInfo, now: float) -> tuple[int, int]:
    """The Unix seconds `[start, end)` of the last hours, days, weeks or months, including the whole current one.

    Days, weeks of seven and months are local; a month is counted from the first.

    Raises:
        typer.BadParameter: It is not a number and h, d, w or mo.
    """
    match = _PERIOD.fullmatch(period.strip().lower())
    if match is None or int(match[1]) * {"h": 1, "d": 24, "w": 168, "mo": 744}[match[2]] > _MOST_DAYS * 24:
        raise typer.BadParameter("write a number and h, d, w or mo, such as 30d or 12h", param_hint="--last")
    count, unit = int(match[1]), match[2]
    if unit == "h":
        end = (int(now) // 3600 + 1) * 3600
        return max(end - count * 3600, 0), end
    today = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    tomorrow = _midnight(today, 1)
    if unit == "mo":
        months = today.year * 12 + today.month - count
        start = today.replace(year=months // 12, month=months % 12 + 1, day=1)
    else:
        start = _midnight(today, 1 - count * (7 if unit == "w" else 1))
    return max(int(start.timestamp()), 0), int(tomorrow.timestamp())


def _midnight(day: datetime, days: int) -> datetime:
    """Local midnight a number of days later, in wall time: a day of 23 hours counts as one."""
    return day + timedelta(days=days)


def download_csv(client: Client, path: str, params: dict[str, Any], out: BinaryIO) -> None:
    """Streams the CSV of a report to `out`, byte for byte.

    Raises:
        Refused: The server refused, cannot be reached, or broke off; what was written then is not whole.
    """
    try:
        with client.http.stream("GET", path, params=params, headers={"Accept": "text/csv"}) as response:
            if response.is_error:
                response.read()
                raise refused(response)
            for piece in response.iter_bytes():
                out.write(piece)
    except httpx.HTTPError as error:
        raise Refused(f"The server broke off or cannot be reached: {type(error).__name__}.") from None
    out.flush()
