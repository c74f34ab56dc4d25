"""An index of a collection's documents by name and by SHA-256, to compare with local files."""

from collections.abc import Iterable, Iterator

from app.cli.remote_collection import RemoteDocument


class Inventory:
    """The documents of one listing; the caller keeps it up to date. Memory: one small record a document."""

    def __init__(self, documents: Iterable[RemoteDocument] = ()) -> None:
        self._named: dict[str, RemoteDocument] = {}
        self._nameless: set[str] = set()  # SHA-256 of documents that are identified by their bytes
        self._above: set[str] = set()  # every folder of the names; a file among them is an archive
        for document in documents:
            if document.status == "deleting":
                continue
            if document.external_id is not None:
                self.add(document)
            elif document.status != "failed":
                self._nameless.add(document.sha256)

    def __contains__(self, external_id: str) -> bool:
        """Whether a document has this name or came from the archive of this name."""
        return external_id in self._named or external_id in self._above

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._named)

    def get(self, external_id: str) -> RemoteDocument | None:
        """The document of this name."""
        return self._named.get(external_id)

    def below(self, external_id: str) -> list[str]:
        """Names of documents that came from the archive of this name."""
        if external_id not in self._above:
            return []
        return [name for name in self._named if name.startswith(f"{external_id}/")]

    def has_bytes(self, sha256: str) -> bool:
        """Whether an unnamed document that has not failed has this SHA-256."""
        return sha256 in self._nameless

    def add(self, document: RemoteDocument) -> None:
        """Adds or replaces a document; unnamed documents are not stored."""
        if document.external_id is not None:
            self._named[document.external_id] = document
            self._above.update(parents(document.external_id))

    def discard(self, external_id: str) -> None:
        """Removes the document of this name."""
        self._named.pop(external_id, None)


def parents(name: str) -> Iterator[str]:
    """The parent folders of a path: `a/b` and `a` for `a/b/c`."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name
