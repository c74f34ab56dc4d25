"""`footnote audit`."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.client import Client, connect


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command()(audit)


def audit(
    context: typer.Context,
    action: Annotated[str | None, typer.Option(help="Only such acts, as key.created.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many.")] = 50,
) -> None:
    """List administrators' actions, newest first."""
    with connect(context.obj) as client:
        show(client, Console(), limit=limit, action=action)


def show(client: Client, console: Console, *, limit: int, action: str | None = None) -> None:
    """Print a page of the audit log."""
    params: dict[str, Any] = {"limit": limit} if action is None else {"limit": limit, "action": action}
    acts = client.call("GET", "/v1/admin/audit", params=params)["data"]
    table = Table("when (UTC)", "who", "did", "to", "detail", box=None, pad_edge=False)
    for act in acts:
        detail = json.dumps(act["detail"], ensure_ascii=False) if act["detail"] else ""
        when = act["at"][:19].replace("T", " ")
        table.add_row(when, Text(act["user_id"]), act["action"], Text(act["target"]), Text(detail))
    console.print(table if acts else "Nothing was done.")
