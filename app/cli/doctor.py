"""`footnote doctor`: one report of the installation for support, without names, texts or secrets."""

import zipfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.client import connect
from app.doctor.report import Level, Report, brief
from app.errors import SetupError
from app.settings import load_settings
from app.types import ServerTarget

_COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "cyan"}


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command()(doctor)


def doctor(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="The whole report as JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the report into this zip file.")] = None,
) -> None:
    """Say what runs here and what is wrong with it, without names, texts or secrets.

    Nothing is changed, and a server that runs is not disturbed. Exit status 1 when a finding is an error. With --url
    the server there is looked at instead.
    """
    from app.doctor.examination import examine, examine_server

    target = context.obj
    if isinstance(target, ServerTarget) and target.url is not None:
        with connect(target) as client:
            report = examine_server(client.http)
    else:
        report = examine(load_settings())
    if out is not None:
        _save(report, out)
    if json:
        typer.echo(report.to_json())
    else:
        _show(report)
    if not report.sound:
        raise typer.Exit(1)


def _save(report: Report, path: Path) -> None:
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("doctor.json", report.to_json())
    except OSError as error:
        raise SetupError(f"The report cannot be written: {error.strerror}.") from None


def _show(report: Report) -> None:
    console = Console(highlight=False)
    for section, facts in report.sections.items():
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, value in facts.items():
            table.add_row(Text(name, style="dim"), Text(brief(value)))
        console.print(Text(section, style="bold"))
        console.print(table)
        console.print()
    if not report.findings:
        console.print("Nothing was found wrong.")
    for finding in report.findings:
        heading = Text.assemble((f"{finding.level.value} ", _COLOURS[finding.level]), finding.sentence)
        console.print(heading, soft_wrap=True)
        console.print(Text(f"  {finding.remedy}"), soft_wrap=True)
