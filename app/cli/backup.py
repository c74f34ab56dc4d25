"""`footnote backup` and `footnote restore`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.cli.progress import Bar
from app.errors import SetupError
from app.settings import load_settings
from app.types import ServerTarget

_SHOWN = 5  # originals named one by one


def register(cli: typer.Typer) -> None:
    """Add the commands."""
    cli.command()(backup)
    cli.command()(restore)


def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where the backup goes, say footnote-2030-01-31.tar.gz.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Save documents, original files, key hashes and the ledger into one file, also while the server runs."""
    from app.backup.snapshot import back_up
    from app.server.originals import stored_originals

    _refuse_url(context)
    console, settings = Console(), load_settings()
    with Bar(Console(stderr=True)) as bar:
        originals = stored_originals(settings)
        summary = back_up(settings, file, originals=originals, force=force, report=bar)
    console.print(
        f"{file}: {file.stat().st_size >> 10:,} KiB, {summary.rows.get('document', 0):,} documents, "
        f"{summary.originals:,} originals, {summary.rows.get('usage_event', 0):,} ledger rows.",
        highlight=False,
        soft_wrap=True,
    )
    for names, what in (
        (summary.missing, "are not in the store: deleted meanwhile, or lost before"),
        (summary.altered, "have other bytes in the store than were uploaded"),
    ):
        if names:
            some = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
            console.print(f"[yellow]{len(names)} originals {what}[/yellow] ({some})", highlight=False, soft_wrap=True)


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A backup.", exists=True, dir_okay=False)],
    into: Annotated[Path | None, typer.Option(help="Data dir to make; default: FOOTNOTE_DATA_DIR.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Move the installation that is there aside; nothing is deleted.")
    ] = False,
) -> None:
    """Restore a data directory from a backup. Stop the server first. All checksums are verified before any change."""
    from app.backup.restore import restore as put_back
    from app.server.originals import restored_originals

    _refuse_url(context)
    settings = load_settings(**({"data_dir": into} if into is not None else {}))
    with Bar(Console(stderr=True)) as bar:
        originals_in = restored_originals(settings)
        restored = put_back(settings, file, originals_in=originals_in, force=force, report=bar)
    manifest, console = restored.manifest, Console()
    if into is not None and settings.originals:
        console.print(
            f"Its originals are in {settings.originals}. Whoever deletes a document here deletes the file there, also "
            "if another installation names it: to try a backup, leave FOOTNOTE_ORIGINALS empty.",
            style="yellow",
            highlight=False,
            soft_wrap=True,
        )
    made = datetime.fromtimestamp(manifest.created_at, tz=UTC).isoformat(timespec="seconds")
    console.print(
        f"Restored the backup of {made} (Footnote {manifest.footnote}, schema {manifest.schema}) "
        f"into {settings.data_dir}. The next start brings the schema up to date and builds the indexes.",
        highlight=False,
        soft_wrap=True,
    )
    if restored.aside is not None:
        console.print(f"What was there before is in {restored.aside}.", highlight=False, soft_wrap=True)
    for name, was in manifest.settings.items():
        if (now := getattr(settings, name)) != was:
            sentence = f"FOOTNOTE_{name.upper()} was {was}, it is {now} here."
            console.print(sentence, style="yellow", highlight=False, soft_wrap=True)


def _refuse_url(context: typer.Context) -> None:
    if isinstance(context.obj, ServerTarget) and context.obj.url is not None:
        raise SetupError("Backups are made from the data dir: run this on the server's machine, without --url.")
