"""`footnote limits list|set|remove`."""

from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.remote_collection import pages
from app.client import connect
from app.errors import InvalidRequest

commands = typer.Typer(help="Rate limits and concurrency limits of keys and tenants.", no_args_is_help=True)

_Key = Annotated[str | None, typer.Option("--api-key", help="Of a key, by its id.")]
_Tenant = Annotated[str | None, typer.Option(help="Of a tenant, over all its keys.")]


@commands.command("list")
def list_limits(
    context: typer.Context,
    tenant: Annotated[
        str | None, typer.Option(help="What this tenant may take, for who operates the installation.")
    ] = None,
) -> None:
    """List the limits set for your tenant and its keys; everything else has the server's defaults."""
    table = Table("whose", "requests a minute", "tokens a minute", "at once", "since", box=None, pad_edge=False)
    with connect(context.obj) as client:
        limits = (
            pages(client, "/v1/admin/limits", {"limit": 500})
            if tenant is None
            else [client.call("GET", _path(None, tenant))]
        )
        for found in limits:
            since = found["updated_at"] or "the default"
            table.add_row(Text(f"{found['scope_type']} {found['id']}"), *_said(found), since)
    Console().print(table if table.row_count else "The server's defaults apply to your tenant and all its keys.")


@commands.command("set")
def change(
    context: typer.Context,
    key: _Key = None,
    tenant: _Tenant = None,
    requests: Annotated[int | None, typer.Option(min=1, help="Requests a minute; default: no limit.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Tokens a minute; default: no limit.")] = None,
    concurrent: Annotated[int | None, typer.Option(min=1, help="Requests at once; default: no limit.")] = None,
) -> None:
    """Set limits of a key or tenant in place of the defaults; they apply within a second."""
    body = {"requests_per_minute": requests, "tokens_per_minute": tokens, "concurrent_requests": concurrent}
    with connect(context.obj) as client:
        found = client.call("PUT", _path(key, tenant), json=body)
    Console().print("{} requests and {} tokens a minute, {} at once".format(*_said(found)), soft_wrap=True)


@commands.command()
def remove(context: typer.Context, key: _Key = None, tenant: _Tenant = None) -> None:
    """Remove a limit, so that the server's defaults apply again."""
    with connect(context.obj) as client:
        client.call("DELETE", _path(key, tenant))
    Console().print("The defaults apply.")


def _path(key: str | None, tenant: str | None) -> str:
    if (key is None) == (tenant is None):
        raise InvalidRequest("Limits are of one key or one tenant: give --api-key or --tenant.")
    kind, whose = ("keys", key) if key is not None else ("tenants", tenant or "")
    return f"/v1/admin/limits/{kind}/{quote(whose, safe='')}"


def _said(found: dict[str, Any]) -> tuple[str, str, str]:
    names = ("requests_per_minute", "tokens_per_minute", "concurrent_requests")
    requests, tokens, concurrent = ("any" if found[name] is None else f"{found[name]:,}" for name in names)
    return requests, tokens, concurrent
