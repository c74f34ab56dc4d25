"""`footnote models fetch|list`."""

import os
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.settings import Settings, load_settings

_READABLE_BY_ALL = 0o022

Found = TypeVar("Found")

commands = typer.Typer(help="The default models.", no_args_is_help=True)


@commands.command()
def fetch(
    verify: Annotated[bool, typer.Option("--verify", help="Also check the SHA-256 of what is there already.")] = False,
) -> None:
    """Install the default embedder and generator on this machine; installed models are kept.

    Where FOOTNOTE_GENERATOR is extractive, only the embedder is installed.
    """
    from app.models.catalog import DEFAULT_MODELS, Kind
    from app.models.fetch import fetch as fetch_model

    os.umask(_READABLE_BY_ALL)  # models are public: an image fetches as root and serves as another user
    console = Console()
    settings = load_settings()
    models_dir = settings.models_dir
    for model in DEFAULT_MODELS:
        if settings.extractive and model.kind is Kind.GENERATOR:
            continue
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
    """List the default models, adapters, readers and judges with SHA-256 check, use, and memory per sequence."""
    from app.errors import SetupError
    from app.models.adapter import adapter_status, configured_adapter
    from app.models.candidate_judge import configured_judge, judge_status
    from app.models.folder import status
    from app.models.memory import sequence_memory
    from app.models.span_reader import configured_reader, reader_status

    settings = load_settings()
    table = Table("model", "kind", "licence", "size", "state", box=None, pad_edge=False)
    for model in status(settings.models_dir):
        state = "sound" if model.sound else "damaged: run `footnote models fetch`" if model.present else "not fetched"
        table.add_row(model.name, model.kind, model.licence, f"{model.bytes / 1e6:.0f} MB", state)
    troubles = []

    def found_by(look: Callable[[Settings], Found | None], kind: str) -> Found | None:
        try:
            return look(settings)
        except SetupError as error:
            troubles.append(f"{kind}: {error}")
            return None

    adapter = found_by(configured_adapter, "Adapter")
    reader = found_by(configured_reader, "Reader")
    judge = found_by(configured_judge, "Judge")
    for kind, loaded, folders in (
        ("adapter", adapter, adapter_status(settings.adapter)),
        ("reader", reader, reader_status(settings.reader)),
        ("judge", judge, judge_status(settings.judge)),
    ):
        for found in folders:
            in_use = loaded is not None and loaded.folder == str(found.folder)
            state = f"sound, {'loaded' if in_use else 'not loaded'}" if found.sound else "damaged"
            table.add_row(f"{found.base}+{found.name}", kind, found.licence, f"{found.bytes / 1e6:.0f} MB", state)
    console = Console()
    console.print(table)
    if settings.extractive:
        generator = "no generator: answers are quoted (extractive)"
    elif settings.remote_url:
        generator = f"generator {settings.remote_model} at a remote server, tokenizer {settings.generator}"
    else:
        generator = f"generator {settings.generator}" + (f" with adapter {adapter.name}" if adapter else "")
    helpers = [f"{kind} {one.name}" for kind, one in (("reader", reader), ("judge", judge)) if one]
    embedder = f"embedder {settings.embedder}" + (f" with {' and '.join(helpers)}" if helpers else "")
    console.print(Text(f"In use: {embedder}, {generator}"), soft_wrap=True)
    for trouble in troubles:
        console.print(Text(trouble), soft_wrap=True)
    if not settings.remote_url and not settings.extractive:
        try:
            memory = str(sequence_memory(settings))
        except SetupError as error:
            memory = str(error)
        console.print(Text(f"Keys and values: {memory}"), soft_wrap=True)
