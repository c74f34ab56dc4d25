"""`footnote check`: what is wrong with this installation, and how to mend it."""

import sqlite3
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.client import Target, connect
from app.errors import AppError
from app.settings import Settings, load_settings

_PACKAGES = ("footnote-rag", "torch", "transformers", "sentence-transformers", "faiss-cpu", "sqlalchemy", "fastapi")


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command()(check)


def check(
    context: typer.Context,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be made again from the database; the rest is reported.")
    ] = False,
) -> None:
    """Look at settings, database, files, index and models; exit status 1 when something is wrong.

    With --url the running server compares its database, files and index instead, and mends them with --repair.
    """
    target = context.obj
    if isinstance(target, Target) and target.url is not None:
        _check_server(target, repair=repair)
        return
    settings = load_settings()
    table = Table("what", "state", "detail", box=None, pad_edge=False)
    sound = True
    for name, look in (*_CHECKS, ("documents", lambda settings: _documents(settings, repair=repair))):
        try:
            good, detail = look(settings)
        except AppError as error:
            good, detail = False, str(error)
        sound &= good
        table.add_row(name, "[green]ok[/green]" if good else "[red]wrong[/red]", Text(detail))
    Console().print(table)
    if not sound:
        raise typer.Exit(1)


def _versions(_: Settings) -> tuple[bool, str]:
    from importlib.metadata import PackageNotFoundError

    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue  # faiss may be the GPU wheel
    return True, f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}, " + ", ".join(found)


def _device(settings: Settings) -> tuple[bool, str]:
    import torch

    if settings.device == "cuda" and not torch.cuda.is_available():
        return False, "FOOTNOTE_DEVICE is cuda, but torch sees no GPU: install the CUDA build, or use auto."
    if torch.cuda.is_available():
        return True, f"GPU: {torch.cuda.get_device_name(0)}"
    return True, f"CPU, {torch.get_num_threads()} threads"


def _database(settings: Settings) -> tuple[bool, str]:
    from app.db.migration import current_revision, head_revision
    from app.db.session import Database

    if not settings.database_url and not settings.data_dir.exists():
        return True, "empty; the first start makes the folder and the tables"
    database = Database.open(settings.resolved_database_url)
    try:
        current, head = current_revision(database), head_revision()
    finally:
        database.close()
    if current is None:
        return True, "empty; the first start makes the tables"
    if current != head:
        return False, f"schema {current}, this version wants {head}: run `footnote migrate`"
    return True, f"{database.dialect}, schema {current}"


def _check_server(target: Target, *, repair: bool) -> None:
    with connect(target, with_models=False) as client:
        found = client.call("POST", "/v1/admin/reconcile", json={"repair": repair})
    console = Console()
    for finding in found["findings"]:
        console.print(_said(finding["detail"], mendable=finding["mendable"], mended=finding["mended"]), soft_wrap=True)
    console.print(f"{found['versions']} document versions, {found['chunks']} chunks", highlight=False)
    if not found["consistent"]:
        raise typer.Exit(1)


def _documents(settings: Settings, *, repair: bool) -> tuple[bool, str]:
    """Rows against rows and files, without loading a model. The index is compared with SQL at every start."""
    from app.server.bootstrap import build

    with build(settings, with_models=False) as state:
        found = state.reconciler.run(None, repair=repair)
    said = [_said(each.sentence, mendable=each.mendable, mended=each.mended) for each in found.findings]
    return not found.open, " ".join([*said, f"{found.versions} document versions, {found.chunks} chunks"])


def _said(sentence: str, *, mendable: bool, mended: bool) -> str:
    if mended:
        return f"{sentence} Mended."
    return f"{sentence} `footnote check --repair` mends that." if mendable else sentence


def _models(settings: Settings) -> tuple[bool, str]:
    from app.models.adapter import configured_adapter
    from app.models.folder import resolve, status
    from app.models.span_reader import configured_reader

    wanted = (settings.embedder,) if settings.extractive else (settings.embedder, settings.generator)
    names = [resolve(setting, models_dir=settings.models_dir) for setting in wanted]
    damaged = [model.name for model in status(settings.models_dir) if model.present and not model.sound]
    if damaged:
        return False, f"{', '.join(damaged)}: damaged. Run `footnote models fetch`."
    if settings.extractive:
        names.append("no generator: answers are quoted")
    if adapter := configured_adapter(settings):
        names.append(f"adapter {adapter.name}")
    if reader := configured_reader(settings):
        names.append(f"reader {reader.name}")
    return True, ", ".join(names)


_CHECKS: tuple[tuple[str, Callable[[Settings], tuple[bool, str]]], ...] = (
    ("versions", _versions),
    ("device", _device),
    ("models", _models),
    ("database", _database),
)
