"""`footnote tenants list|add|key|disable|enable`."""

from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.remote_collection import pages
from app.client import connect

commands = typer.Typer(help="Tenants of the installation.", no_args_is_help=True)

_Id = Annotated[str, typer.Argument(help="The tenant's id.")]


@commands.command("list")
def list_tenants(context: typer.Context) -> None:
    """List tenants."""
    table = Table("id", "name", "created", "state", box=None, pad_edge=False)
    with connect(context.obj) as client:
        for tenant in pages(client, "/v1/admin/tenants", {"limit": 500}):
            state = f"disabled {tenant['disabled_at']}" if tenant["disabled_at"] else "works"
            table.add_row(Text(tenant["id"]), Text(tenant["name"]), tenant["created_at"], state)
    Console().print(table)


@commands.command()
def add(
    context: typer.Context,
    tenant_id: _Id,
    name: Annotated[str | None, typer.Option(help="For your own orientation; default: the id.")] = None,
) -> None:
    """Create a tenant and its first admin key; the secret is shown once."""
    with connect(context.obj) as client:
        client.call("POST", "/v1/admin/tenants", json={"id": tenant_id, "name": name or tenant_id})
        key = client.call("POST", f"{_path(tenant_id)}/keys", json={})
    Console().print(f"{key['id']}  {key['role']}\n{key['secret']}", soft_wrap=True)


@commands.command()
def key(context: typer.Context, tenant_id: _Id) -> None:
    """Create another admin key of a tenant; the secret is shown once."""
    with connect(context.obj) as client:
        made = client.call("POST", f"{_path(tenant_id)}/keys", json={"name": "another admin key"})
    Console().print(f"{made['id']}  {made['role']}\n{made['secret']}", soft_wrap=True)


@commands.command()
def disable(context: typer.Context, tenant_id: _Id) -> None:
    """Disable a tenant: its users and keys are refused, its data stays."""
    with connect(context.obj) as client:
        client.call("PATCH", _path(tenant_id), json={"disabled": True})
    Console().print("Disabled.")


@commands.command()
def enable(context: typer.Context, tenant_id: _Id) -> None:
    """Enable a disabled tenant."""
    with connect(context.obj) as client:
        client.call("PATCH", _path(tenant_id), json={"disabled": False})
    Console().print("Enabled.")


def _path(tenant_id: str) -> str:
    return f"/v1/admin/tenants/{quote(tenant_id, safe='')}"
