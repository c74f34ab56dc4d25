"""A judged collection on disk (the BEIR layout), whose documents are divided into what trains and what measures."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the documents that answer it, and its short answers where the collection has them."""

    id: str
    text: str
    relevant: frozenset[str]
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents by id (title, then text), judged questions, and the SHA-256 of the files they came from."""

    name: str
    documents: dict[str, str]
    titles: dict[str, str]
    questions: tuple[Question, ...]
    sha256: str

    def held_apart(self, document_id: str, *, share: float) -> bool:
        """Whether a document is held out for measurement.

        Decided by the title, so that passages of one article stay together, in every collection that
        has some; a document without a title goes by its id.
        """
        name = self.titles[document_id].casefold() or f"{self.name}/{document_id}"
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") < share * 2**32


def read_collection(folder: Path) -> Collection:
    """Read `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`; questions without a relevant document are left out.

    Raises:
        OSError: A file is missing.
        ValueError: A file has the wrong format.
    """
    files = [folder / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv")]
    sha256 = hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()
    documents, titles = {}, {}
    for row in _rows(files[0]):
        title = " ".join((row.get("title") or "").split())
        documents[row["_id"]] = f"{title}\n{row['text']}" if title else row["text"]
        titles[row["_id"]] = title
    relevant: dict[str, set[str]] = {}
    for line in files[2].read_text(encoding="utf-8").splitlines()[1:]:
        question_id, document_id, grade = line.split("\t")
        if int(grade) > 0 and document_id in documents:
            relevant.setdefault(question_id, set()).add(document_id)
    questions = tuple(
        Question(row["_id"], row["text"], frozenset(relevant[row["_id"]]), tuple(row.get("answers") or ()))
        for row in _rows(files[1])
        if row["_id"] in relevant and not row.get("unanswerable")
    )
    return Collection(folder.name, documents, titles, questions, sha256)


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
