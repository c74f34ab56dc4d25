"""`footnote models fetch|list`."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.settings import load_settings

commands = typer.Typer(help="The default models.", no_args_is_help=True)


@commands.command()
def fetch(
    verify: Annotated[bool, typer.Option("--verify", help="Also check the SHA-256 of what is there already.")] = False,
) -> None:
    """Put the default embedder and generator on this machine; what is there already is kept."""
    from app.models.catalog import DEFAULT_MODELS
    from app.models.fetch import fetch as fetch_model

    console = Console()
    models_dir = load_settings().models_dir
    for model in DEFAULT_MODELS:
        with console.status(model.name) as status:
            folder = fetch_model(
                model,
                models_dir=models_dir,
                verify=verify,
                on_progress=status.update,
            )
        console.print(Text(f"{model.name} ({model.kind}, {model.licence}): {folder}"), soft_wrap=True)


@commands.command("list")
def list_models() -> None:
    """The default models, checked by SHA-256, what the settings name, and what a sequence costs in memory."""
    from app.errors import SetupError
    from app.models.folder import status
    from app.models.memory import sequence_memory

    settings = load_settings()
    table = Table("model", "kind", "licence", "size", "state", box=None, pad_edge=False)
    for model in status(settings.models_dir):
        state = "sound" if model.sound else "damaged: run `footnote models fetch`" if model.present else "not fetched"
        table.add_row(model.name, model.kind, model.licence, f"{model.bytes / 1e6:.0f} MB", state)
    console = Console()
    console.print(table)
    if settings.remote_url:
        generator = f"generator {settings.remote_model} at a remote server, tokenizer {settings.generator}"
    else:
        generator = f"generator {settings.generator}"
    console.print(Text(f"In use: embedder {settings.embedder}, {generator}"), soft_wrap=True)
    if not settings.remote_url:
        try:
            memory = str(sequence_memory(settings))
        except SetupError as error:
            memory = str(error)
        console.print(Text(f"Keys and values: {memory}"), soft_wrap=True)
