"""`footnote ingest`: uploads files and folders into a collection, once or continuously."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.folder import Folder, find_files
from app.cli.mirror import Mirror
from app.cli.progress import Progressing, progress_of
from app.cli.remote_collection import HttpCollection, collection_id_of
from app.cli.retries import Patience
from app.cli.tally import Tally, UploadResult
from app.cli.watch import Follower, follow, watched
from app.client import Client, connect
from app.errors import SetupError

_PATIENCE_S = 300.0  # wait for a full or restarting server, report a dead one
INTERRUPTED = 130  # 128 + SIGINT, as shells count
_SHOWN_FAILURES = 200

_EPILOG = (
    "Run it again after an interruption or a change: only what is new or changed is uploaded. "
    "Exit status: 0 all is well, 2 some files failed, 130 interrupted, 1 it could not go on."
)


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command(epilog=_EPILOG)(ingest)


def ingest(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Files and folders; folders are walked.", exists=True)],
    collection: Annotated[str, typer.Option("--collection", "-c", help="Name or id; made if missing.")] = "default",
    prefix: Annotated[
        str,
        typer.Option(
            help="Written before every path, like a folder: keeps apart files of the same path from several places, "
            "and is the name of the place when the folder moves."
        ),
    ] = "",
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow one folder until stopped: what is added, changed, removed.")
    ] = False,
    keep_removed: Annotated[
        bool, typer.Option("--keep-removed", help="With --watch: documents stay when their files are removed.")
    ] = False,
    rescan: Annotated[
        float, typer.Option(min=1, help="With --watch: seconds between looks at everything, for missed changes.")
    ] = 300,
) -> None:
    """Upload files and wait until each is indexed, or failed with a reason.

    A file in a folder is identified by its path there: when it changes, its document gets a new version.
    A file given by its own path is identified by its bytes. Hidden files are left out.
    """
    if watch:
        if len(paths) != 1 or not paths[0].is_dir():
            raise SetupError("--watch follows one folder; run the command once for each.")
        _watch(context, Folder(paths[0], prefix=prefix), collection, keep_removed=keep_removed, rescan_s=rescan)
        return
    if keep_removed:
        raise SetupError("--keep-removed goes with --watch; without it nothing is removed.")
    found = find_files(paths, prefix=prefix)
    if not found.files and not found.unreadable:
        raise SetupError("There are no files at these paths.")
    console, tally = Console(), Tally()
    try:
        with connect(context.obj, with_models=True) as client, progress_of(console, each=False) as progress:
            collection_id = collection_id_of(client, collection, make=True)
            mirror = _mirror(client, collection_id, tally, progress, limit_s=_PATIENCE_S)
            if any(file.external_id is not None for file in found.files):
                mirror.load()
            for unreadable in found.unreadable:
                mirror.give_up(unreadable)
            mirror.put_all(found.files)
            mirror.drain()
    except KeyboardInterrupt:
        report(console, tally)
        goes_on = "the server goes on with it" if context.obj.url else "the next command goes on with it"
        console.print(
            f"Stopped. What was uploaded is kept, and {goes_on}; run this one again for the rest.", soft_wrap=True
        )
        raise typer.Exit(INTERRUPTED) from None
    report(console, tally)
    if tally.failures:
        raise typer.Exit(2)


def _watch(context: typer.Context, folder: Folder, collection: str, *, keep_removed: bool, rescan_s: float) -> None:
    console, tally = Console(), Tally()
    try:
        with (
            _stopped_by_termination(),
            connect(context.obj, with_models=True) as client,
            progress_of(console, each=True) as progress,
        ):
            collection_id = collection_id_of(client, collection, make=True)
            mirror = _mirror(client, collection_id, tally, progress, limit_s=None)
            follower = Follower(folder, mirror, keep_removed=keep_removed, say=progress.say)
            progress.say(f"Following {folder.root}; stop with Ctrl-C.")
            follow(follower, mirror, watched(folder.root), rescan_s=rescan_s)
    except KeyboardInterrupt:
        report(console, tally)
        console.print("Stopped following; the next start takes up what changes until then.")


def _mirror(
    client: Client, collection_id: str, tally: Tally, progress: Progressing, *, limit_s: float | None
) -> Mirror:
    return Mirror(
        HttpCollection(client, collection_id),
        scope=collection_id,
        patience=Patience(limit_s=limit_s, say=progress.say),
        tally=tally,
        observer=progress,
    )


@contextmanager
def _stopped_by_termination() -> Iterator[None]:
    """Makes SIGTERM end the block like Ctrl-C, because service managers run followers too."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def report(console: Console, tally: Tally) -> None:
    """Prints the failures as a table, and the totals."""
    if tally.failures:
        table = Table("failed", "reason", box=None, pad_edge=False)
        for name, reason in sorted(tally.failures.items())[:_SHOWN_FAILURES]:
            table.add_row(Text(name, style="red"), Text(reason))
        console.print(table)
        if len(tally.failures) > _SHOWN_FAILURES:
            console.print(f"… and {len(tally.failures) - _SHOWN_FAILURES:,} more: `footnote documents --status failed`")
    sums = [
        f"{tally.outcomes[UploadResult.INDEXED]:,} indexed",
        f"{tally.outcomes[UploadResult.UNCHANGED]:,} unchanged",
    ]
    if removed := tally.outcomes[UploadResult.REMOVED]:
        sums.append(f"{removed:,} removed")
    sums.append(f"{len(tally.failures):,} failed")
    spent = f"({tally.pages:,} pages, {tally.chunks:,} chunks, {tally.tokens:,} tokens)"
    console.print(", ".join(sums), spent, soft_wrap=True)
