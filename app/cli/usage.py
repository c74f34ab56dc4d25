"""`footnote usage`."""

import time
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.connection import connect


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command()(usage)


def usage(
    context: typer.Context,
    by: Annotated[str, typer.Option(help="Comma-separated: user_id, api_key_id, model.")] = "user_id,model",
    days: Annotated[int, typer.Option(min=1, max=3660, help="How many days back, today included.")] = 30,
) -> None:
    """Completion tokens by day (UTC), one row per group."""
    end = (int(time.time()) // 86_400 + 1) * 86_400
    params: dict[str, Any] = {
        "start_time": end - days * 86_400,
        "end_time": end,
        "bucket_width": "1d",
        "group_by": [part.strip() for part in by.split(",") if part.strip()],
        "limit": 31,
    }
    columns = ("day", *params["group_by"], "requests", "input", "output", "aborted")
    table = Table(*columns, box=None, pad_edge=False)
    with connect(context.obj) as client:
        page: str | None = None
        while True:
            report = client.call(
                "GET", "/v1/admin/usage/completions", params={**params, **({"page": page} if page else {})}
            )
            for bucket in report["data"]:
                day = datetime.fromtimestamp(bucket["start_time"], tz=UTC).date().isoformat()
                for result in bucket["results"]:
                    table.add_row(
                        day,
                        *(Text(str(result[name])) for name in params["group_by"]),
                        str(result["num_model_requests"]),
                        str(result["input_tokens"]),
                        str(result["output_tokens"]),
                        str(result["num_aborted"]),
                    )
            page = report["next_page"]
            if page is None:
                break
    Console().print(table if table.row_count else "Nothing was spent.")
