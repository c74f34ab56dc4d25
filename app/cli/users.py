"""`footnote users list|add|disable|enable|remove`."""

from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.remote_collection import pages
from app.client import connect

commands = typer.Typer(help="Users of your tenant.", no_args_is_help=True)

_Id = Annotated[str, typer.Argument(help="The user's id.")]


@commands.command("list")
def list_users(context: typer.Context) -> None:
    """List users."""
    table = Table("id", "name", "created", "state", box=None, pad_edge=False)
    with connect(context.obj) as client:
        for user in pages(client, "/v1/admin/users", {"limit": 500}):
            state = f"disabled {user['disabled_at']}" if user["disabled_at"] else "works"
            table.add_row(Text(user["id"]), Text(user["name"]), user["created_at"], state)
    Console().print(table)


@commands.command()
def add(
    context: typer.Context,
    user_id: _Id,
    name: Annotated[str, typer.Option(help="For your own orientation.")] = "",
) -> None:
    """Create a user."""
    with connect(context.obj) as client:
        user = client.call("POST", "/v1/admin/users", json={"id": user_id, "name": name})
    Console().print(user["id"], markup=False)


@commands.command()
def disable(context: typer.Context, user_id: _Id) -> None:
    """Disable a user: its keys and sessions are refused until it is enabled again."""
    _patch(context, user_id, disabled=True)
    Console().print("Disabled.")


@commands.command()
def enable(context: typer.Context, user_id: _Id) -> None:
    """Enable a disabled user."""
    _patch(context, user_id, disabled=False)
    Console().print("Enabled.")


@commands.command()
def remove(context: typer.Context, user_id: _Id) -> None:
    """Remove a user: its keys and sessions end permanently, its usage stays."""
    with connect(context.obj) as client:
        client.call("DELETE", f"/v1/admin/users/{quote(user_id, safe='')}")
    Console().print("Removed.")


def _patch(context: typer.Context, user_id: str, *, disabled: bool) -> None:
    with connect(context.obj) as client:
        client.call("PATCH", f"/v1/admin/users/{quote(user_id, safe='')}", json={"disabled": disabled})
