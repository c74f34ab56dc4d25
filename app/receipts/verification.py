"""The checks of a receipt, each told in one sentence; none needs a server, a network or a data directory.

Whether the signature holds and whose it is, whether the bill adds up, and whether each footnote's words stand where it
says in the document with that hash. All checks are made, so that a receipt that was changed says everything that is
wrong with it.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from app.receipts.form import (
    FormOfBill,
    FormOfDocument,
    FormOfFootnote,
    FormOfKey,
    FormOfReceipt,
    FormOfRow,
    NotAReceipt,
    keys_in,
    read_object,
    receipt_in,
)
from app.receipts.signing import NotSigned, signer_of, thumbprint
from app.types import Operation
from app.usage.ledger.pricing import Rate, cost_pico
from ingestion.errors import IngestionError

ReadText = Callable[[Path, str], str]
"""The canonical text of a file, which was uploaded under a name; raises `IngestionError`."""

_GONE = {
    "deleted": "its document was deleted before the receipt was made",
    "version_deleted": "this version of its document was deleted before the receipt was made",
    "not_readable": "whoever asked for the receipt could not read its document",
}
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class ReceiptCheck:
    """A check and what it found. `holds` is None where nothing was to be decided: the sentence says why."""

    holds: bool | None
    says: str


def verify(
    raw: bytes, *, keys: bytes | None = None, files: Mapping[str, Path] | None = None, read_text: ReadText | None = None
) -> Iterator[ReceiptCheck]:
    """The checks of a receipt, one by one.

    Args:
        raw: The receipt's file.
        keys: The file with the keys that are trusted, a JWK set; without it a receipt's own key is believed, and said.
        files: The files that may be the documents, by SHA-256 (`hashed`); without it no document is looked at.
        read_text: Reads a file's text, with `files`.

    Example:
        >>> all(check.holds is not False for check in verify(raw, keys=keys))
        True
    """
    try:
        fields = read_object(raw, "The receipt")
        trusted = None if keys is None else keys_in(read_object(keys, "The file of keys"))
    except NotAReceipt as fault:
        yield ReceiptCheck(False, str(fault))
        return
    receipt: FormOfReceipt | None = None
    try:
        receipt = receipt_in(fields)
    except NotAReceipt as fault:
        yield ReceiptCheck(False, str(fault))
    yield from _signature(fields, receipt, trusted)
    if receipt is None:
        return
    yield from _bill(receipt.bill)
    yield from _footnotes(receipt, files, read_text)


def hashed(folder: Path) -> dict[str, Path]:
    """The files in a folder and those below it, by SHA-256; links are not followed.

    Raises:
        OSError: A file cannot be read.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        found.setdefault(digest.hexdigest(), path)
    return found


def _signature(
    fields: Mapping[str, Any], receipt: FormOfReceipt | None, trusted: Mapping[bytes, FormOfKey] | None
) -> Iterator[ReceiptCheck]:
    try:
        signer = signer_of(fields)
    except NotSigned as error:
        yield ReceiptCheck(False, f"The signature does not hold: {error}")
        return
    yield ReceiptCheck(True, "The signature holds: nothing was changed since it was made.")
    key_id = thumbprint(signer)
    if trusted is None:
        says = "is the receipt's own: anybody could have made it. --keys checks whose it is."
        yield ReceiptCheck(None, f"The key {key_id} {says}")
    elif (key := trusted.get(signer)) is None:
        yield ReceiptCheck(False, f"The key {key_id} is not in the file of keys: somebody else signed.")
    elif receipt is not None and (fault := _untimely(key, receipt.issued_at)) is not None:
        yield ReceiptCheck(False, f"The key {key_id} {fault}")
    else:
        yield ReceiptCheck(True, f"The key {key_id} is in the file of keys.")


def _untimely(key: FormOfKey, issued_at: datetime) -> str | None:
    if key.retired_at is not None and issued_at > key.retired_at:
        return f"was retired at {key.retired_at}, and the receipt says it was made after that, at {issued_at}."
    if key.created_at is not None and issued_at < key.created_at:
        return f"was made at {key.created_at}, and the receipt says it was made before that, at {issued_at}."
    return None


def _bill(bill: FormOfBill) -> Iterator[ReceiptCheck]:
    rows, total = bill.rows, bill.total
    faults = [*_faults_of_rows(rows)]
    priced = [_pico(row.cost) for row in rows if row.cost is not None]
    sums = {
        "cost": (sum(priced) if priced else None, None if total.cost is None else _pico(total.cost)),
        "input tokens": (sum(row.input_tokens for row in rows), total.input_tokens),
        "output tokens": (sum(row.output_tokens for row in rows), total.output_tokens),
        "number without a price": (len(rows) - len(priced), total.rows_without_price),
    }
    faults += [f"the {name} of the rows is not the total's" for name, (found, told) in sums.items() if found != told]
    if {row.currency for row in rows} - {total.currency}:
        faults.append("a row is in another currency than the total")
    if len({(row.event_id, row.adjustment_id) for row in rows}) != len(rows):
        faults.append("a row is there twice")
    for fault in faults:
        yield ReceiptCheck(False, f"The bill does not add up: {fault}.")
    if not faults:
        yield ReceiptCheck(True, f"The bill adds up: {len(rows)} rows sum to its total.")


def _faults_of_rows(rows: Sequence[FormOfRow]) -> Iterator[str]:
    """Calls that cost something else than their tokens at their prices. An adjustment is a change, without prices."""
    for row in rows:
        if row.adjustment_id is not None:
            continue
        if row.operation not in {*Operation}:
            yield f"the row {row.event_id} is of an unknown operation"
            continue
        cost = cost_pico(
            [Rate("", price.meter, _pico(price.cost_per_token)) for price in row.prices],
            Operation(row.operation),
            input_tokens=row.input_tokens,
            cached_tokens=row.input_cached_tokens,
            output_tokens=row.output_tokens,
        )
        if cost != (None if row.cost is None else _pico(row.cost)):
            yield f"the cost of the row {row.event_id} is not its tokens at their prices"


def _footnotes(
    receipt: FormOfReceipt, files: Mapping[str, Path] | None, read_text: ReadText | None
) -> Iterator[ReceiptCheck]:
    documents = {(one.document_id, one.version): one for one in receipt.documents}
    withheld = {(one.document_id, one.version): one.reason for one in receipt.withheld}
    texts: dict[str, _Text] = {}
    for footnote in receipt.footnotes:
        place, name = (footnote.document_id, footnote.version), f"Footnote {footnote.index}"
        document = documents.get(place)
        if document is None and place not in withheld:
            yield ReceiptCheck(False, f"{name} cites a document that the receipt neither lists nor withholds.")
        elif document is None:
            yield ReceiptCheck(None, f"{name} cannot be checked: {_GONE[withheld[place]]}.")
        elif (fault := _fault_of_range(footnote)) is not None:
            yield ReceiptCheck(False, f"{name} {fault}")
        elif files is not None and read_text is not None:
            if document.sha256 not in texts:
                texts[document.sha256] = _text_of(document, files, read_text)
            yield _found(footnote, document, texts[document.sha256])
    if files is None and receipt.footnotes:
        yield ReceiptCheck(None, "No document was looked at: --documents names the folder with their files.")


def _fault_of_range(footnote: FormOfFootnote) -> str | None:
    start, end, words = footnote.start_char, footnote.end_char, footnote.cited_text
    if start is None or end is None or not words:
        return "has no words, though its document is listed."
    if len(words) != end - start:
        return f"has {len(words)} characters, and its range has {end - start}."
    return None


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a document's file, or the reason why there is none; `same` where it is the one that was cited."""

    path: Path | None = None
    text: str = ""
    same: bool = False
    fault: str = ""


def _text_of(document: FormOfDocument, files: Mapping[str, Path], read_text: ReadText) -> _Text:
    path = files.get(document.sha256)
    if path is None:
        return _Text(fault=f"no file in the folder has the SHA-256 {document.sha256} of {document.filename!r}")
    try:
        text = read_text(path, document.filename)
    except IngestionError as error:
        return _Text(fault=f"the file of {document.filename!r} cannot be read: {error}")
    return _Text(path, text, same=hashlib.sha256(text.encode()).hexdigest() == document.text_sha256)


def _found(footnote: FormOfFootnote, document: FormOfDocument, read: _Text) -> ReceiptCheck:
    name, words = f"Footnote {footnote.index}", footnote.cited_text or ""
    if read.path is None:
        return ReceiptCheck(False, f"{name} was not found: {read.fault}.")
    if read.same and read.text[footnote.start_char : footnote.end_char] == words:
        return ReceiptCheck(True, f"{name} stands at its place in {document.filename!r}, word for word.")
    if read.same:
        return ReceiptCheck(False, f"{name} does not stand at its place in {document.filename!r}.")
    if words in read.text:
        says = "The text of the file is not the one that was cited, as another version of Footnote may read it."
        return ReceiptCheck(True, f"{name} stands in {document.filename!r}, word for word. {says}")
    return ReceiptCheck(
        False, f"{name} does not stand in {document.filename!r}, whose text is not the one that was cited."
    )


def _pico(amount: str) -> int:
    """An amount in pico-units; `FormOfReceipt` has checked that it has 12 decimals."""
    return int(amount.replace(".", ""))
