"""What a server must hold, kept beside it in memory: every document acknowledged, whatever was killed meanwhile."""

import math
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import httpx

from app.documents.adapters.folder_originals import FolderOriginals
from tests.faults.forked import ForkedServer

ABSENT = ""
_SEARCHED = 24  # of the markers used, the newest, at every check


@dataclass(slots=True)
class Entry:
    """A document of ours: the markers its live text may bear. More than one only where a kill left that open."""

    document_id: str | None = None
    markers: set[str] = field(default_factory=lambda: {ABSENT})


class Library:
    """Documents by external id. Each text bears a marker of its own, a word that stands nowhere else.

    A change that was acknowledged is held to; one that was cut off may have happened or not, whole.
    """

    def __init__(self, server: ForkedServer) -> None:
        self.server = server
        self.entries: dict[str, Entry] = {}
        self.acknowledged = 0
        self._used: list[str] = []

    def noted(self) -> "Library":
        """A copy, which later changes leave as it is."""
        copy = Library(self.server)
        copy.entries = {name: Entry(entry.document_id, set(entry.markers)) for name, entry in self.entries.items()}
        copy._used = list(self._used)
        return copy

    def until(self, later: "Library", server: ForkedServer) -> "Library":
        """What `server` may hold if it ended between this note and a later one: each change has happened, or not."""
        between = later.noted()
        between.server = server
        for name, entry in between.entries.items():
            entry.markers |= self.entries.get(name, Entry()).markers
        return between

    def upload(self, name: str, *, paragraphs: int = 2) -> None:
        """A new document, or a new version of the one of that name."""
        entry, marker = self.entries.setdefault(name, Entry()), self._marker(name)

        def send() -> None:
            body = self.server.upload(f"{name}.txt", text_with(marker, paragraphs), external_id=name)
            entry.document_id = body["id"]

        self._attempt(entry, marker, send)

    def replace(self, name: str, *, paragraphs: int = 2) -> None:
        """Other bytes for a document that is there."""
        entry, marker = self.entries[name], self._marker(name)

        def send() -> None:
            response = self.server.http.put(
                f"/v1/documents/{entry.document_id}",
                files={"file": (f"{name}.txt", text_with(marker, paragraphs).encode())},
            )
            assert response.status_code == 202, response.text

        self._attempt(entry, marker, send)

    def delete(self, name: str) -> None:
        """Remove a document that is there."""
        entry = self.entries[name]

        def send() -> None:
            response = self.server.http.delete(f"/v1/documents/{entry.document_id}")
            assert response.status_code == 200, response.text

        self._attempt(entry, ABSENT, send)

    def peek(self, name: str) -> None:
        """Search for a document that is there; a server that is being killed need not answer."""
        markers = self.entries[name].markers
        try:
            response = self.server.http.post("/v1/search", json={"query": " ".join(markers), "mode": "lexical"})
        except httpx.TransportError:
            return
        assert response.status_code == 200, response.text

    def present(self) -> list[str]:
        """Names of documents that are certainly there."""
        return sorted(
            name
            for name, entry in list(self.entries.items())
            if ABSENT not in entry.markers and entry.document_id is not None
        )

    def search(self, marker: str) -> set[str]:
        """External ids of the documents found whose passage bears `marker`."""
        found = self._search(marker, "lexical", top_k=10)
        return {hit["external_id"] for hit in found if marker in hit["text"].split()}

    def check(self, *, seconds: float = 60.0) -> None:
        """Wait until nothing is under way, then hold the server to what was acknowledged; open outcomes get settled."""
        documents = {one["external_id"]: one for one in self.server.settled(seconds=seconds)}
        failed = [one for one in documents.values() if one["status"] != "indexed"]
        assert not failed, failed
        chunks = 0
        live: set[str] = set()
        for name, entry in self.entries.items():
            marker = ABSENT
            if name in documents:
                entry.document_id = documents[name]["id"]
                marker, count = self._marker_of(entry.document_id)
                chunks += count
                live.add(marker)
            assert marker in entry.markers, f"{name} bears {marker or 'nothing'}, not one of {sorted(entry.markers)}"
            entry.markers = {marker}
        assert documents.keys() <= self.entries.keys(), "a document nobody uploaded"
        for marker in self._used[-_SEARCHED:]:
            named = {marker.split("x")[0]} if marker in live else set()
            assert {name.replace("-", "") for name in self.search(marker)} == named, marker
        assert len(self._search("keeper", "dense", top_k=200)) == chunks, "the index and SQL differ"
        self._books_agree(len(documents), chunks)

    def _attempt(self, entry: Entry, marker: str, send: Any) -> None:
        entry.markers = entry.markers | {marker}
        try:
            send()
        except httpx.TransportError:
            return  # it was killed: either may be
        self.acknowledged += 1
        entry.markers = {marker}

    def _marker(self, name: str) -> str:
        marker = f"{name.replace('-', '')}x{len(self._used)}"
        self._used.append(marker)
        return marker

    def _marker_of(self, document_id: str) -> tuple[str, int]:
        """The marker of a document's live text, and its chunks, each of which must slice that text."""
        text = self.server.http.get(f"/v1/documents/{document_id}/content").text
        listed = self.server.http.get(f"/v1/documents/{document_id}/chunks", params={"limit": 500}).json()["data"]
        assert listed
        assert all(one["text"] == text[one["start_char"] : one["end_char"]] for one in listed)
        return text.split()[0], len(listed)

    def _search(self, query: str, mode: str, *, top_k: int) -> list[dict[str, Any]]:
        response = self.server.http.post("/v1/search", json={"query": query, "mode": mode, "top_k": top_k})
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()["data"]
        return found

    def _books_agree(self, documents: int, chunks: int) -> None:
        """No orphan in SQL or on disk, and nothing reserved for work that is over."""
        with closing(sqlite3.connect(f"file:{self.server.data_dir / 'footnote.db'}?mode=ro", uri=True)) as connection:

            def count(query: str) -> int:
                return int(connection.execute(f"SELECT count(*) FROM {query}").fetchone()[0])

            assert count("document") == documents
            assert count("chunk") == chunks
            assert count("chunk_vector") == chunks
            assert count("job WHERE status IN ('queued', 'running')") == 0
            named = {name for (name,) in connection.execute("SELECT object FROM document_version")}
        folder = self.server.data_dir / "files"
        assert FolderOriginals(folder).put_before(math.inf) == named, "the originals differ from the versions"
        assert not list((folder / "incoming").iterdir())


def text_with(marker: str, paragraphs: int) -> str:
    """A text of so many paragraphs that begins with `marker`, and bears it in each."""
    return "\n\n".join(
        f"{marker} paragraph {number}: the keeper counted forty ships on day {number} and wrote {marker} down."
        for number in range(paragraphs)
    )
