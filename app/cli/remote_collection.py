"""A client for one collection of a server, with the calls that ingestion needs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from app.client import Client, Refused
from app.errors import AppError, SetupError

_FINAL = frozenset({"indexed", "failed", "deleting"})
# Statuses that refuse this file; every other one would refuse the next file as well.
_OF_THE_FILE = frozenset({400, 409, 413, 415, 422, 500})


class FileRefused(AppError):
    """The server refused this file; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class RemoteDocument:
    """A document in the server's listing. `sha256` and `bytes` are of its newest version, counts of its live one.

    `folder` is the mark of the tree it was uploaded from.
    """

    id: str
    name: str
    external_id: str | None
    folder: str | None
    sha256: str
    bytes: int
    status: str
    pages: int = 0
    chunks: int = 0
    embedding_tokens: int = 0
    reason: str | None = None

    @property
    def final(self) -> bool:
        """Whether the document is indexed or failed."""
        return self.status in _FINAL

    @classmethod
    def of(cls, body: dict[str, Any]) -> "RemoteDocument":
        """Parses a document from its API body."""
        folder = body["metadata"].get("folder")
        return cls(
            id=body["id"],
            name=body["filename"],
            external_id=body["external_id"],
            folder=folder if isinstance(folder, str) else None,
            sha256=body["sha256"],
            bytes=body["bytes"],
            status=body["status"],
            pages=body["counts"]["pages"] or 0,
            chunks=body["counts"]["chunks"],
            embedding_tokens=body["usage"]["embedding_tokens"],
            reason=body["error"]["detail"] if body["error"] else None,
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """The server's response to an upload: a document, or the documents of an archive.

    `known`: ids of those it already had. `skipped`: paths in the archive that became no
    document, and why.
    """

    documents: tuple[RemoteDocument, ...]
    known: frozenset[str] = frozenset()
    skipped: tuple[tuple[str, str], ...] = ()
    archive: bool = False


class RemoteCollection(Protocol):
    """The documents of one collection. Every call may raise `Refused`: the server is full, unreachable or refuses."""

    def list(self) -> Iterator[RemoteDocument]:
        """All documents, newest first."""

    def read(self, document_id: str) -> RemoteDocument | None:
        """The document's current state; None when it was deleted."""

    def upload(
        self, path: Path, *, filename: str, external_id: str | None, folder: str | None, idempotency_key: str
    ) -> Receipt:
        """Send a file; a known external id gets a new version. `folder` marks the document; None keeps it.

        Raises:
            FileRefused: The server does not take this file.
            OSError: It cannot be read.
        """

    def delete(self, document_id: str) -> None:
        """Deletes a document; a missing one is no error."""


class HttpCollection:
    """A `RemoteCollection` over HTTP."""

    def __init__(self, client: Client, collection_id: str | None) -> None:
        """Take the client; without a collection, documents can be read and deleted, not listed or sent."""
        self._client = client
        self._collection_id = collection_id

    @property
    def id(self) -> str:
        """The collection's id."""
        assert self._collection_id is not None, "made for single documents"
        return self._collection_id

    def list(self) -> Iterator[RemoteDocument]:
        """All documents, newest first, a page of 500 at a time."""
        for body in pages(self._client, "/v1/documents", {"limit": 500, "collection_id": self.id}):
            yield RemoteDocument.of(body)

    def read(self, document_id: str) -> RemoteDocument | None:
        """The document's current state; None when it was deleted."""
        try:
            return RemoteDocument.of(self._client.call("GET", f"/v1/documents/{document_id}"))
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def upload(
        self, path: Path, *, filename: str, external_id: str | None, folder: str | None, idempotency_key: str
    ) -> Receipt:
        """Uploads a file, streamed from disk."""
        fields = {"collection_id": self.id}
        if external_id is not None:
            fields["external_id"] = external_id
        if folder is not None:
            fields["metadata"] = json.dumps({"folder": folder})
        with path.open("rb") as file:
            try:
                body = self._client.call(
                    "POST",
                    "/v1/documents",
                    files={"file": (filename, file)},
                    data=fields,
                    headers={"Idempotency-Key": idempotency_key},
                )
            except Refused as error:
                if error.status in _OF_THE_FILE and error.retry_after_s is None:
                    raise FileRefused(str(error)) from None
                raise
        return _receipt(body)

    def delete(self, document_id: str) -> None:
        """Deletes a document; a missing one is no error."""
        try:
            self._client.call("DELETE", f"/v1/documents/{document_id}")
        except Refused as error:
            if error.status != 404:
                raise


def _receipt(body: dict[str, Any]) -> Receipt:
    archive = body["object"] == "list"
    bodies = body["data"] if archive else [body]
    return Receipt(
        tuple(map(RemoteDocument.of, bodies)),
        known=frozenset(item["id"] for item in bodies if item["duplicate_of"] is not None),
        skipped=tuple((item["name"], item["detail"]) for item in body["skipped"]) if archive else (),
        archive=archive,
    )


def pages(client: Client, path: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields all items of a paginated list."""
    cursor: str | None = None
    while True:
        page = client.call("GET", path, params={**params, **({"cursor": cursor} if cursor else {})})
        yield from page["data"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def collection_id_of(client: Client, name: str, *, make: bool = False) -> str:
    """Finds a collection's id by its name or id.

    Raises:
        SetupError: There is none, and `make` is false.
    """
    for item in pages(client, "/v1/collections", {"limit": 500}):
        if name in {item["id"], item["name"]}:
            return str(item["id"])
    if not make:
        raise SetupError(f"There is no collection '{name}'.")
    return str(client.call("POST", "/v1/collections", json={"name": name})["id"])
