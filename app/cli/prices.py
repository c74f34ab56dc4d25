"""`footnote prices list|set|rerate`."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.remote_collection import pages
from app.client import Client, connect

commands = typer.Typer(help="Prices of models' tokens.", no_args_is_help=True)

_MOMENTS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]


@commands.command("list")
def list_prices(
    context: typer.Context,
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    at: Annotated[
        datetime | None, typer.Option(formats=_MOMENTS, help="Only those in force then; UTC unless it says.")
    ] = None,
) -> None:
    """List past, current and future prices."""
    with connect(context.obj) as client:
        show(client, Console(), model=model, at=at)


@commands.command("set")
def set_price(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="The model as reports name it.")],
    meter: Annotated[str, typer.Argument(help="input, cached_input, output or embedding.")],
    price: Annotated[str, typer.Argument(help="For a million tokens, such as 0.15.")],
    begin: Annotated[
        datetime | None,
        typer.Option("--from", formats=_MOMENTS, help="When it begins; UTC unless it says; default: now."),
    ] = None,
    source: Annotated[str, typer.Option(help="Where the figure is from.")] = "",
) -> None:
    """Set a price from a date on; the previous price ends then."""
    with connect(context.obj) as client:
        begin_price(client, Console(), model, meter, price, begin=begin, source=source)


@commands.command()
def rerate(
    context: typer.Context,
    start: Annotated[
        datetime, typer.Option("--from", formats=_MOMENTS, help="Calls settled from then; UTC unless it says.")
    ],
    end: Annotated[
        datetime, typer.Option("--to", formats=_MOMENTS, help="Calls settled before then; UTC unless it says.")
    ],
    reason: Annotated[str, typer.Option(help="Kept with every adjustment.")],
    model: Annotated[list[str] | None, typer.Option(help="Only this model; repeatable.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the adjustments; without it nothing changes.")] = False,
) -> None:
    """Compute what settled calls cost at the prices now on record for their time; --write stores the difference."""
    with connect(context.obj) as client:
        rerate_calls(client, Console(), start=start, end=end, models=model, reason=reason, write=write)


def show(client: Client, console: Console, *, model: str | None = None, at: datetime | None = None) -> None:
    """Prints prices, all of them or those of one model at one time."""
    chosen = {"model": model, "at": None if at is None else _seconds(at)}
    params = {"limit": 500, **{name: value for name, value in chosen.items() if value is not None}}
    table = Table("model", "meter", box=None, pad_edge=False)
    table.add_column("per million", justify="right")
    for name in ("from", "to", "by", "source"):
        table.add_column(name)
    for price in pages(client, "/v1/admin/prices", params):
        table.add_row(
            Text(price["model"]),
            price["meter"],
            f"{price['price_per_million']} {price['currency']}",
            _moment(price["effective_from"]),
            "" if price["effective_to"] is None else _moment(price["effective_to"]),
            Text(price["created_by"]),
            Text(price["source"]),
        )
    console.print(table if table.row_count else "There are no prices.")


def begin_price(
    client: Client, console: Console, model: str, meter: str, price: str, *, begin: datetime | None, source: str
) -> None:
    """Sets a price and prints when it starts."""
    body = {
        "model": model,
        "meter": meter,
        "price_per_million": price,
        "effective_from": None if begin is None else _seconds(begin),
        "source": source,
    }
    added = client.call("POST", "/v1/admin/prices", json=body)
    said = f"{model}, {meter}: {added['price_per_million']} {added['currency']} a million tokens"
    console.print(Text(f"{said} from {_moment(added['effective_from'])}."), soft_wrap=True)


def rerate_calls(
    client: Client,
    console: Console,
    *,
    start: datetime,
    end: datetime,
    models: list[str] | None,
    reason: str,
    write: bool,
) -> None:
    """Re-rates settled calls; with `write` false it only prints the effect."""
    body = {
        "start_time": round(_seconds(start)),
        "end_time": round(_seconds(end)),
        "models": models or None,
        "reason": reason,
        "dry_run": not write,
    }
    rerating = client.call("POST", "/v1/admin/prices/rerate", json=body)
    if not rerating["models"]:
        console.print("No call was settled then.")
        return
    console.print(_table(rerating))
    console.print("Adjusted." if write else "Nothing was changed; --write does it.")


def _table(rerating: dict[str, Any]) -> Table:
    table = Table("model", box=None, pad_edge=False)
    for name in ("calls", "adjusted", "newly priced", "unpriced", "difference"):
        table.add_column(name, justify="right")
    for item in rerating["models"]:
        numbers = (item[f"num_{name}"] for name in ("calls", "adjusted", "newly_priced", "unpriced"))
        table.add_row(Text(item["model"]), *(f"{number:,}" for number in numbers), _amount(item["difference"]))
    return table


def _amount(money: dict[str, str]) -> str:
    return f"{money['value']} {money['currency']}"


def _seconds(moment: datetime) -> float:
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
