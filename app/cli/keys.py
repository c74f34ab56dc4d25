"""`footnote keys create|list|rotate|revoke|rotate-signing`."""

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.remote_collection import collection_id_of, pages
from app.client import connect
from app.types import Role

commands = typer.Typer(help="API keys.", no_args_is_help=True)


@commands.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="For your own orientation.")],
    role: Annotated[Role, typer.Option(help="What it may do.")] = Role.MEMBER,
    user: Annotated[str | None, typer.Option(help="Id or name of the user it is for; default: its own name.")] = None,
    collection: Annotated[list[str] | None, typer.Option(help="Limit it to collections; repeatable.")] = None,
    days: Annotated[float | None, typer.Option(help="Days until it stops working.")] = None,
) -> None:
    """Create a key and show its secret once."""
    with connect(context.obj) as client:
        body: dict[str, Any] = {"name": name, "role": role.value, "user_id": user}
        if collection:
            body["collections"] = [collection_id_of(client, item) for item in collection]
        if days is not None:
            body["expires_in"] = days * 86_400
        key = client.call("POST", "/v1/admin/keys", json=body)
    Console().print(f"{key['id']}  {key['role']}\n{key['secret']}", soft_wrap=True)


@commands.command("list")
def list_keys(context: typer.Context) -> None:
    """List keys; secrets are not stored, so they are not shown."""
    table = Table("id", "name", "role", "user", "prefix", "created", "state", box=None, pad_edge=False)
    with connect(context.obj) as client:
        for key in pages(client, "/v1/admin/keys", {"limit": 500}):
            state = "revoked" if key["revoked_at"] else f"until {key['expires_at']}" if key["expires_at"] else "works"
            table.add_row(
                key["id"], Text(key["name"]), key["role"], Text(key["user_id"]), key["prefix"], key["created_at"], state
            )
    Console().print(table)


@commands.command()
def rotate(
    context: typer.Context,
    key_id: Annotated[str, typer.Argument(help="The key's id.")],
    overlap: Annotated[float, typer.Option(min=0, help="Hours the secret before works on, at most 168.")] = 0,
) -> None:
    """Replace a key's secret and show it once; budgets, limits and usage stay with the key."""
    with connect(context.obj) as client:
        key = client.call("POST", f"/v1/admin/keys/{key_id}/rotate", json={"overlap_s": overlap * 3600})
    Console().print(f"{key['id']}  {key['role']}\n{key['secret']}", soft_wrap=True)


@commands.command()
def revoke(context: typer.Context, key_id: Annotated[str, typer.Argument(help="The key's id.")]) -> None:
    """Revoke a key."""
    with connect(context.obj) as client:
        client.call("DELETE", f"/v1/admin/keys/{key_id}")
    Console().print("Revoked.")


@commands.command("rotate-signing")
def rotate_signing(context: typer.Context) -> None:
    """Sign receipts with a new key; the public keys before it stay listed, so that older receipts verify."""
    with connect(context.obj) as client:
        key = client.call("POST", "/v1/admin/signing-keys/rotate")
    Console().print(f"Receipts are signed with {key['kid']} from now on.", soft_wrap=True)
