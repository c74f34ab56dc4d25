"""The entry point: registers the commands and prints errors as one sentence."""

import gc
import os
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from app.cli.catalogue import CommandGroup
from app.errors import AppError
from app.types import ServerTarget
from generation.errors import GenerationError
from ingestion.errors import IngestionError
from retrieval.errors import RetrievalError

_ONLY_THE_OWNER = 0o077

cli = typer.Typer(
    cls=CommandGroup,
    name="footnote",
    help="Answers questions from your own documents. Every claim carries a footnote, every token is on the bill.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@cli.callback()
def connection(
    context: typer.Context,
    url: Annotated[
        str | None, typer.Option(envvar="FOOTNOTE_URL", help="A running server; default: the data dir.")
    ] = None,
    key: Annotated[str | None, typer.Option(envvar="FOOTNOTE_KEY", help="API key for --url.")] = None,
) -> None:
    """Answers questions from your own documents, on a server or on the local data directory."""
    context.obj = ServerTarget(url=url, key=key)


@cli.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as distribution_version

    Console().print(distribution_version("footnote-rag"))


def main() -> None:
    """Runs a command. An expected error is printed as one sentence with exit status 1, without a traceback.

    What a command creates is accessible to its owner only (umask(2)): the data dir holds documents.
    """
    os.umask(_ONLY_THE_OWNER)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Importing four thousand modules makes the collector look at a growing heap again and again and
    # free nothing: a sixth of the start. `serve` and the local client turn it on when they are up.
    gc.disable()
    try:
        cli()
    except (AppError, GenerationError, IngestionError, RetrievalError) as error:
        Console(stderr=True).print(f"[red]footnote:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(1)
