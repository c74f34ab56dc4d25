"""`footnote verify` checks the receipt of an answer, without a server, a network or a data directory."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from app.receipts.verification import ReceiptCheck, hashed, verify

_MOST_BYTES = 64 << 20
_SIGNS = {True: ("holds ", "green"), False: ("FAILS ", "red"), None: ("note  ", "yellow")}


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command("verify")(verify_receipt)


def verify_receipt(
    receipt: Annotated[Path, typer.Argument(help="The receipt, as GET /v1/answers/{id}/receipt gave it.")],
    documents: Annotated[
        Path | None, typer.Option(help="A folder with the cited files, under any names.", exists=True, file_okay=False)
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="The keys you trust: a copy of /.well-known/footnote-keys.json.")
    ] = None,
) -> None:
    """Verify the receipt of an answer, without a server, a network or a data directory.

    Its signature and its bill are checked, and with a folder of the files each of its footnotes. The exit status is 1
    when a check fails.
    """
    console, error = Console(), Console(stderr=True)
    try:
        raw, trusted = _read(receipt), None if keys is None else _read(keys)
        files = None if documents is None else hashed(documents)
    except OSError as fault:
        error.print(f"{fault.filename} cannot be read: {fault.strerror}.", soft_wrap=True, markup=False)
        raise typer.Exit(1) from None
    from ingestion.child_extractor import ChildExtractor, find_soffice

    failed = False
    with closing(ChildExtractor(soffice=find_soffice())) as extractor:
        read_text: Callable[[Path, str], str] = lambda path, name: extractor.extract(path, filename=name).text  # noqa: E731
        for check in verify(raw, keys=trusted, files=files, read_text=read_text):
            failed |= check.holds is False
            console.print(_shown(check), soft_wrap=True)
    raise typer.Exit(1 if failed else 0)


def _shown(check: ReceiptCheck) -> Text:
    sign, colour = _SIGNS[check.holds]
    return Text.assemble((sign, colour), check.says)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise OSError(0, "it is larger than 64 MiB", str(path))
    return raw
