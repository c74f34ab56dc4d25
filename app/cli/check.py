"""`footnote check`: reports inconsistencies of this installation and repairs those that the database can repair."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.client import connect
from app.doctor.report import Level, Report, brief
from app.errors import AppError
from app.settings import Settings, load_settings
from app.types import ServerTarget

_COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "cyan"}


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command()(check)


def check(
    context: typer.Context,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild what the database can rebuild; report the rest.")
    ] = False,
) -> None:
    """Check versions, models, database, files and index; exit status 1 when something is wrong.

    With --url the running server compares its database, files and index instead, and repairs them with --repair.
    """
    target = context.obj
    if isinstance(target, ServerTarget) and target.url is not None:
        _check_server(target, repair=repair)
        return
    from app.doctor.examination import examine_models_and_database

    settings = load_settings()
    console = Console()
    report = examine_models_and_database(settings)
    _show(console, report)
    consistent = _check_documents(console, settings, repair=repair)
    if not (report.sound and consistent):
        raise typer.Exit(1)


def _show(console: Console, report: Report) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for section, facts in report.sections.items():
        table.add_row(section, Text(brief(facts)))
    console.print(table)
    for finding in report.findings:
        line = Text.assemble(
            (f"{finding.level.value} ", _COLOURS[finding.level]), f"{finding.sentence} {finding.remedy}"
        )
        console.print(line, soft_wrap=True)


def _check_documents(console: Console, settings: Settings, *, repair: bool) -> bool:
    """Compare rows with rows and files, loading no model. The index is compared with SQL at every start."""
    from app.server.bootstrap import build

    try:
        with build(settings, with_models=False) as state:
            found = state.corpus.reconciler.run(None, repair=repair)
    except AppError as error:
        console.print(Text.assemble(("error ", "red"), str(error)), soft_wrap=True)
        return False
    for each in found.findings:
        console.print(_line(each.sentence, mendable=each.mendable, mended=each.mended), soft_wrap=True)
    console.print(f"documents  {found.versions} document versions, {found.chunks} chunks", highlight=False)
    return not found.open


def _check_server(target: ServerTarget, *, repair: bool) -> None:
    with connect(target, with_models=False) as client:
        found = client.call("POST", "/v1/admin/reconcile", json={"repair": repair})
    console = Console()
    for finding in found["findings"]:
        console.print(_line(finding["detail"], mendable=finding["mendable"], mended=finding["mended"]), soft_wrap=True)
    console.print(f"{found['versions']} document versions, {found['chunks']} chunks", highlight=False)
    if not found["consistent"]:
        raise typer.Exit(1)


def _line(sentence: str, *, mendable: bool, mended: bool) -> str:
    if mended:
        return f"{sentence} Repaired."
    return f"{sentence} `footnote check --repair` repairs that." if mendable else sentence
