"""`footnote budgets list|add|set|reset|remove`."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.remote_collection import collection_id_of, pages
from app.client import connect
from app.errors import InvalidRequest

commands = typer.Typer(help="Budgets: the most that keys, users and tenants may spend.", no_args_is_help=True)

_LEAST_WIDTH = 120  # columns: a narrow terminal wraps the lines, and ids stay whole

_Id = Annotated[str, typer.Argument(help="The budget's id.")]
_Tokens = Annotated[int | None, typer.Option(min=0, help="The limit, in tokens.")]
_Cost = Annotated[str | None, typer.Option(help="The limit, in the currency of the prices, such as 25.50.")]
_Thresholds = Annotated[
    list[int] | None, typer.Option("--threshold", help="Percent of the limit at which to tell; repeatable.")
]
_Webhook = Annotated[str | None, typer.Option(help="Where alerts are posted, besides the log.")]


@commands.command("list")
def list_budgets(context: typer.Context) -> None:
    """List budgets and how much of each is used in the current period."""
    table = Table(box=None, pad_edge=False)
    table.add_column("id", no_wrap=True)  # to be copied
    for name in ("whose", "period"):
        table.add_column(name, overflow="fold")
    for name in ("limit", "used", "reserved", "left"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("unit", "kind", "resets"):
        table.add_column(name)
    with connect(context.obj) as client:
        for budget in pages(client, "/v1/admin/budgets", {"limit": 500}):
            table.add_row(
                budget["id"],
                Text(f"{budget['scope_type']} {budget['scope_id']}"),
                f"{budget['period']} {budget['tz']}" if budget["period"] in {"day", "month"} else budget["period"],
                *(_short(budget[name]) for name in ("limit", "used", "reserved", "remaining")),
                budget["currency"] or "tokens",
                budget["enforcement"],
                "never" if budget["reset_at"] is None else _moment(budget["reset_at"]),
            )
    console = Console()
    console.width = max(console.width, _LEAST_WIDTH)
    console.print(table if table.row_count else "There are no budgets.")


@commands.command()
def add(
    context: typer.Context,
    period: Annotated[str, typer.Argument(help="minute, day, month or total.")],
    tokens: _Tokens = None,
    cost: _Cost = None,
    user: Annotated[str | None, typer.Option(help="For a user; default: for the whole tenant.")] = None,
    api_key: Annotated[str | None, typer.Option(help="For a key, by its id.")] = None,
    collection: Annotated[str | None, typer.Option(help="For a collection, by name or id.")] = None,
    tz: Annotated[str | None, typer.Option(help="IANA zone of days and months; default: the reporting zone.")] = None,
    soft: Annotated[bool, typer.Option(help="Refuse nothing, only count and tell.")] = False,
    threshold: _Thresholds = None,
    webhook: _Webhook = None,
) -> None:
    """Set a budget."""
    scopes = {"user": user, "key": api_key, "collection": collection}
    named = [(kind, value) for kind, value in scopes.items() if value is not None]
    if len(named) > 1:
        raise InvalidRequest("A budget is for one of --user, --api-key and --collection.")
    limit = _limit(tokens, cost)
    if not limit:
        raise InvalidRequest("A budget needs a limit: --tokens or --cost.")
    body: dict[str, Any] = {
        **limit,
        "unit": "tokens" if tokens is not None else "cost",
        "period": period,
        "tz": tz,
        "enforcement": "soft" if soft else "hard",
        "thresholds": threshold or [],
        "webhook_url": webhook or "",
    }
    with connect(context.obj) as client:
        for kind, value in named:
            body["scope_type"] = kind
            body["scope_id"] = collection_id_of(client, value) if kind == "collection" else value
        budget = client.call("POST", "/v1/admin/budgets", json=body)
    Console().print(budget["id"], soft_wrap=True)


@commands.command("set")
def change(
    context: typer.Context,
    budget_id: _Id,
    tokens: _Tokens = None,
    cost: _Cost = None,
    hard: Annotated[bool | None, typer.Option("--hard/--soft", help="Refuse what does not fit, or only tell.")] = None,
    threshold: _Thresholds = None,
    webhook: _Webhook = None,
) -> None:
    """Raise or lower a budget, or change what it does; it applies at once."""
    body = _limit(tokens, cost)
    if hard is not None:
        body["enforcement"] = "hard" if hard else "soft"
    if threshold:
        body["thresholds"] = threshold
    if webhook is not None:
        body["webhook_url"] = webhook
    if not body:
        raise InvalidRequest("Say what to change: --tokens, --cost, --hard, --soft, --threshold or --webhook.")
    with connect(context.obj) as client:
        budget = client.call("PATCH", f"/v1/admin/budgets/{budget_id}", json=body)
    Console().print(f"{_short(budget['limit'])} {budget['currency'] or 'tokens'} a {budget['period']}", soft_wrap=True)


@commands.command()
def reset(context: typer.Context, budget_id: _Id) -> None:
    """Reset a budget's usage to zero."""
    with connect(context.obj) as client:
        client.call("POST", f"/v1/admin/budgets/{budget_id}/reset")
    Console().print("Reset.")


@commands.command()
def remove(context: typer.Context, budget_id: _Id) -> None:
    """Remove a budget; its past usage stays on record."""
    with connect(context.obj) as client:
        client.call("DELETE", f"/v1/admin/budgets/{budget_id}")
    Console().print("Removed.")


def _limit(tokens: int | None, cost: str | None) -> dict[str, Any]:
    if tokens is not None and cost is not None:
        raise InvalidRequest("A limit is in tokens or in money: give --tokens or --cost.")
    if tokens is None and cost is None:
        return {}
    return {"limit": tokens if tokens is not None else cost}


def _short(amount: int | str) -> str:
    """Formats an amount: tokens with thousands separators, money with at least two decimals."""
    if isinstance(amount, int):
        return f"{amount:,}"
    whole, _, rest = amount.partition(".")
    return f"{whole}.{rest.rstrip('0').ljust(2, '0')}"


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
