"""A collection in memory that keeps the server's promises, for tests of what is sent to it."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from app.cli.remote_collection import FileRefused, Receipt, RemoteDocument
from app.cli.tally import Tally, UploadResult
from app.client import Refused


class MemoryCollection:
    """Upserts by external id, recognises bytes without one, indexes what is read `reads` times.

    Bytes that begin with `bad` fail in processing, with `refused` are not taken, with `zip:` are an
    archive of the lines that follow (`name=content`).
    """

    def __init__(self, *, reads: int = 1) -> None:
        self.documents: dict[str, RemoteDocument] = {}
        self.contents: dict[str, bytes] = {}
        self.uploads: list[str] = []
        self.keys: list[str] = []
        self.troubles: list[Refused] = []
        self._reads = reads
        self._left: dict[str, int] = {}
        self._next = 0

    def named(self) -> dict[str, bytes]:
        return {
            document.external_id: self.contents[document.id]
            for document in self.documents.values()
            if document.external_id is not None
        }

    def list(self) -> Iterator[RemoteDocument]:
        return iter(list(self.documents.values()))

    def read(self, document_id: str) -> RemoteDocument | None:
        self._trouble()
        document = self.documents.get(document_id)
        if document is None or document.final:
            return document
        self._left[document_id] -= 1
        if self._left[document_id] <= 0:
            failed = self.contents[document_id].startswith(b"bad")
            self.documents[document_id] = (
                replace(document, status="failed", reason="It holds no text.")
                if failed
                else replace(document, status="indexed", pages=1, chunks=2, embedding_tokens=100)
            )
        return self.documents[document_id]

    def upload(
        self, path: Path, *, filename: str, external_id: str | None, folder: str | None, idempotency_key: str
    ) -> Receipt:
        content = path.read_bytes()
        self.keys.append(idempotency_key)
        self._trouble()
        if content.startswith(b"refused"):
            raise FileRefused("Not a type we read.")
        self.uploads.append(external_id or filename)
        if content.startswith(b"zip:"):
            members = [line.partition(b"=") for line in content[4:].splitlines()]
            made = [
                self.keep(value, filename=name.decode(), external_id=f"{external_id}/{name.decode()}", folder=folder)
                for name, _, value in members
            ]
            known = frozenset(document.id for document, is_known in made if is_known)
            return Receipt(tuple(document for document, _ in made), known=known, archive=True)
        document, is_known = self.keep(content, filename=filename, external_id=external_id, folder=folder)
        return Receipt((document,), known=frozenset({document.id} if is_known else ()))

    def delete(self, document_id: str) -> None:
        self._trouble()
        self.documents.pop(document_id, None)

    def keep(
        self, content: bytes, *, filename: str, external_id: str | None, folder: str | None
    ) -> tuple[RemoteDocument, bool]:
        sha256 = hashlib.sha256(content).hexdigest()
        for document in self.documents.values():
            same = document.sha256 == sha256 if external_id is None else document.external_id == external_id
            if same and document.sha256 == sha256:
                return document, True
            if same:
                return self._queue(document.id, content, filename, external_id, folder or document.folder), False
        self._next += 1
        return self._queue(f"doc_{self._next}", content, filename, external_id, folder), False

    def _queue(
        self, document_id: str, content: bytes, filename: str, external_id: str | None, folder: str | None
    ) -> RemoteDocument:
        self._left[document_id] = self._reads
        self.contents[document_id] = content
        self.documents[document_id] = RemoteDocument(
            id=document_id,
            name=filename,
            external_id=external_id,
            folder=folder,
            sha256=hashlib.sha256(content).hexdigest(),
            bytes=len(content),
            status="queued",
        )
        return self.documents[document_id]

    def _trouble(self) -> None:
        if self.troubles:
            raise self.troubles.pop(0)


class Notes:
    """What a person would have been shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.outcomes: list[tuple[UploadResult, str]] = []
        self.stages: list[dict[str, int]] = []

    def show(self, tally: Tally) -> None:
        self.stages.append(dict(tally.stages))

    def settled(self, outcome: UploadResult, name: str, detail: str) -> None:
        self.outcomes.append((outcome, name))

    def say(self, line: str) -> None:
        self.lines.append(line)
