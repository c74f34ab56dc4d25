"""Mirrors local files into a collection and uploads only what is missing or changed."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol
from uuid import uuid4

from app.cli.folder import LocalFile, Unreadable, sha256_of, signature_of
from app.cli.inventory import Inventory
from app.cli.remote_collection import FileRefused, Receipt, RemoteCollection, RemoteDocument
from app.cli.retries import Patience
from app.cli.tally import Tally, UploadResult

_IN_FLIGHT = 64  # uploads waited for at once: the server always has work, and a folder of thousands is no flood
_LOOKED_AT = 8  # documents that are asked about without being finished; jobs finish about in order
_PAUSE_S = 0.25
_LOOK_EVERY_S = 1.0


class MirrorObserver(Protocol):
    """Receives progress for display."""

    def show(self, tally: Tally) -> None:
        """Shows changed counts; called often."""

    def settled(self, outcome: UploadResult, name: str, detail: str) -> None:
        """Reports that a file is done."""

    def say(self, line: str) -> None:
        """Shows a message to the user."""


@dataclass(frozen=True, slots=True)
class Put:
    """The result of uploading a file: `sha256` of the server's document of that name, None when there is none.

    `stood_still` is false when the file changed meanwhile: it must be put again. `members`: of an
    archive that was sent, the names its files have on the server.
    """

    sha256: str | None
    stood_still: bool
    members: frozenset[str] | None = None


@dataclass(slots=True)
class _InFlight:
    name: str
    size: int
    status: str


class Mirror:
    """Uploads files, follows them until they are indexed, and deletes documents."""

    def __init__(
        self,
        collection: RemoteCollection,
        *,
        scope: str,
        patience: Patience,
        tally: Tally,
        observer: MirrorObserver,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take collaborators.

        Args:
            collection: Where documents go.
            scope: Part of the idempotency keys besides the file: the collection's id.
            patience: Repeats calls.
            tally: Counts.
            observer: Shows them.
            sleep: Waits for some seconds.
        """
        self.tally = tally
        self._collection = collection
        self._scope = scope
        self._patience = patience
        self._observer = observer
        self._sleep = sleep
        self._inventory = Inventory()
        self._mine: set[str] = set()  # external ids put in this run
        self._in_flight: dict[str, _InFlight] = {}
        self._looked_at = tally.clock()

    def load(self) -> None:
        """Lists the collection once, to skip files that are already there. Memory: one small record a document."""
        self._inventory = Inventory(self._patience(lambda: list(self._collection.list())))

    def sha256(self, external_id: str) -> str | None:
        """SHA-256 of the server's document of this name; None when there is none."""
        document = self._inventory.get(external_id)
        return document.sha256 if document else None

    def owns(self, external_id: str, mark: str) -> bool:
        """Whether the document of this name was uploaded from the tree with this mark, now or earlier."""
        document = self._inventory.get(external_id)
        return document is not None and (document.folder == mark or external_id in self._mine)

    def owned(self, mark: str) -> set[str]:
        """Names of all documents that `owns` accepts."""
        return {name for name in self._inventory if self.owns(name, mark)}

    def owned_below(self, external_id: str, mark: str) -> set[str]:
        """The names in `owned` that came from the archive of this name."""
        return {name for name in self._inventory.below(external_id) if self.owns(name, mark)}

    def put(self, file: LocalFile) -> Put:
        """Uploads a file unless the server has it; waits while too many uploads are in flight.

        Raises:
            Refused: The server is away or unwilling, beyond patience.
        """
        self.tally.expect(files=1, size=file.signature.size)
        return self._put(file)

    def put_all(self, files: Sequence[LocalFile]) -> None:
        """Calls `put` for each file; all of them count as outstanding from the start.

        Raises:
            Refused: As in `put`.
        """
        self.tally.expect(files=len(files), size=sum(file.signature.size for file in files))
        for file in files:
            self._put(file)

    def _put(self, file: LocalFile) -> Put:
        self._make_room()
        try:
            sha256 = sha256_of(file.path)
            if file.external_id is not None:
                self._mine.add(file.external_id)
                if self._is_there(file, file.external_id, sha256):
                    return self._result(file)
            receipt = self._upload(file, sha256)
            self._accept(file, receipt)
            if receipt.archive:
                return self._result(file, members=receipt)
        except OSError as error:
            self._settle(UploadResult.FAILED, file.name, file.signature.size, f"cannot be read: {error.strerror}")
        except FileRefused as error:
            self._settle(UploadResult.FAILED, file.name, file.signature.size, str(error))
        return self._result(file)

    def give_up(self, unreadable: Unreadable) -> None:
        """Counts a file that cannot be ingested."""
        self.tally.expect(files=1, size=0)
        self._settle(UploadResult.FAILED, unreadable.name, 0, unreadable.reason)

    def track(self, document: RemoteDocument, *, name: str) -> None:
        """Follows a document that is already on the server; reports use `name` for it."""
        self.tally.expect(files=1, size=document.bytes)
        self._follow(document, name, document.bytes)

    def remove(self, external_id: str) -> None:
        """Deletes the document of this name, if there is one.

        Raises:
            Refused: As in `put`.
        """
        document = self._inventory.get(external_id)
        if document is None:
            return
        self._patience(lambda: self._collection.delete(document.id))
        self._inventory.discard(external_id)
        self._mine.discard(external_id)
        if (overtaken := self._in_flight.pop(document.id, None)) is not None:
            self._settle(UploadResult.OVERTAKEN, overtaken.name, overtaken.size)
        self._settle(UploadResult.REMOVED, external_id, 0)

    def poll(self) -> bool:
        """Polls the oldest documents in flight; returns whether one finished."""
        standing = finished = 0
        self._looked_at = self.tally.clock()
        for document_id in list(self._in_flight):
            document = self._patience(partial(self._collection.read, document_id))
            if document is not None and not document.final:
                self._in_flight[document_id].status = document.status
                standing += 1
                if standing == _LOOKED_AT:
                    break
                continue
            finished += 1
            self._finish(document, self._in_flight.pop(document_id))
        self._show()
        return finished > 0

    def drain(self) -> None:
        """Waits until nothing is in flight."""
        while self._in_flight:
            if not self.poll():
                self._sleep(_PAUSE_S)

    @property
    def in_flight(self) -> int:
        """The number of documents the server is still processing."""
        return len(self._in_flight)

    def _make_room(self) -> None:
        if self.tally.clock() - self._looked_at > _LOOK_EVERY_S:
            self.poll()
        while len(self._in_flight) >= _IN_FLIGHT:
            if not self.poll():
                self._sleep(_PAUSE_S)

    def _is_there(self, file: LocalFile, external_id: str, sha256: str) -> bool:
        """Whether the server has these bytes; if so, counts the file as done."""
        document = self._inventory.get(external_id)
        if document is None and self._inventory.has_bytes(sha256):
            self._settle(UploadResult.UNCHANGED, file.name, file.signature.size)
            return True
        if document is None or document.sha256 != sha256:
            return False
        if document.status == "failed":
            self._settle(UploadResult.FAILED, file.name, file.signature.size, document.reason)
        elif document.final:
            self._settle(UploadResult.UNCHANGED, file.name, file.signature.size)
        else:
            self._follow(document, file.name, file.signature.size)
        return True

    def _upload(self, file: LocalFile, sha256: str) -> Receipt:
        new = file.external_id is None or file.external_id not in self._inventory
        # A repetition of this call repeats its key. A later upload has another, even of the same bytes:
        # a file that reappears, or is reverted, must not get the stored response of a day ago.
        intent = json.dumps([self._scope, file.external_id, sha256, uuid4().hex])
        key = hashlib.sha256(intent.encode()).hexdigest()
        return self._patience(
            lambda: self._collection.upload(
                file.path,
                filename=file.path.name,
                external_id=file.external_id,
                folder=file.folder if new else None,
                idempotency_key=key,
            )
        )

    def _accept(self, file: LocalFile, receipt: Receipt) -> None:
        sizes = [file.signature.size, *[0] * (len(receipt.documents) + len(receipt.skipped) - 1)]
        self.tally.expect(files=len(sizes) - 1, size=0)
        for document, size in zip(receipt.documents, sizes, strict=False):
            name = (document.external_id or f"{file.name}/{document.name}") if receipt.archive else file.name
            self._inventory.add(document)
            if document.external_id is not None:
                self._mine.add(document.external_id)
            known = document.id in receipt.known
            if known and document.id in self._in_flight:  # another file of this run, of the same bytes
                self._settle(UploadResult.UNCHANGED, name, size)
            elif known and document.final:
                outcome = UploadResult.FAILED if document.status == "failed" else UploadResult.UNCHANGED
                self._settle(outcome, name, size, document.reason)
            else:
                self._follow(document, name, size)
        for member, reason in receipt.skipped:
            self._settle(UploadResult.FAILED, f"{file.name}/{member}", 0, reason)

    def _result(self, file: LocalFile, *, members: Receipt | None = None) -> Put:
        held = self.sha256(file.external_id) if file.external_id is not None else None
        names = None
        if members is not None:
            skipped = {f"{file.external_id}/{name}" for name, _ in members.skipped}
            names = frozenset(skipped | {document.external_id or "" for document in members.documents})
        return Put(held, stood_still=signature_of(file.path) == file.signature, members=names)

    def _follow(self, document: RemoteDocument, name: str, size: int) -> None:
        overtaken = self._in_flight.pop(document.id, None)
        if overtaken is not None:
            self._settle(UploadResult.OVERTAKEN, overtaken.name, overtaken.size)
        self._in_flight[document.id] = _InFlight(name, size, document.status)
        self._show()

    def _finish(self, document: RemoteDocument | None, job: _InFlight) -> None:
        if document is None or document.status == "deleting":
            self._settle(UploadResult.FAILED, job.name, job.size, "was deleted on the server before it was indexed")
            return
        self._inventory.add(document)
        if document.status == "failed":
            self._settle(UploadResult.FAILED, job.name, job.size, document.reason)
            return
        self.tally.embedded(pages=document.pages, chunks=document.chunks, tokens=document.embedding_tokens)
        self._settle(
            UploadResult.INDEXED,
            job.name,
            job.size,
            "1 chunk" if document.chunks == 1 else f"{document.chunks:,} chunks",
        )

    def _settle(self, outcome: UploadResult, name: str, size: int, detail: str | None = None) -> None:
        self.tally.settle(outcome, name, size=size, reason=detail)
        self._observer.settled(outcome, name, detail or "")
        self._show()

    def _show(self) -> None:
        self.tally.stages = Counter(job.status for job in self._in_flight.values())
        self._observer.show(self.tally)
