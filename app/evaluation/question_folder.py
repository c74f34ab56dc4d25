"""Reads a question set that people make by hand: a folder of their documents, and `questions.csv` beside them.

The first line of the file names its columns: `question`, `expected words` (alternatives separated by `|`) and
`document`, the name of the file that answers. A question with neither is one that no document answers.
"""

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from app.evaluation.types import QuestionSet, QuestionSetMalformed, SetDocument, SetQuestion

FILE = "questions.csv"

_EXPECTED = ("expected words", "expected", "answer")
_ALTERNATIVES = "|"


def is_question_folder(folder: Path) -> bool:
    """Whether a folder holds documents and `questions.csv`, and no corpus of the BEIR layout."""
    return (folder / FILE).is_file() and not (folder / "corpus.jsonl").exists()


def read_question_folder(folder: Path) -> QuestionSet:
    """The question set in `folder`: each file in it or below is a document, except hidden ones and `questions.csv`.

    Raises:
        QuestionSetMalformed: The file is not UTF-8, lacks a column or a question, or names no document of the folder;
            the message names the line.
    """
    name = folder.resolve().name
    documents = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    if not documents:
        raise QuestionSetMalformed(f"{name}: put the documents that the questions are about beside {FILE}.")
    questions: dict[str, SetQuestion] = {}
    judgments: dict[str, dict[str, int]] = {}
    for number, row in _rows(folder / FILE, shown=f"{name}/{FILE}"):
        text, document = row["question"], row["document"]
        expected = tuple(words for part in row["expected"].split(_ALTERNATIVES) if (words := part.strip()))
        if not text:
            raise QuestionSetMalformed(f"{name}/{FILE}, line {number}: the question is empty.")
        question_id = str(number)
        questions[question_id] = SetQuestion(question_id, text, expected, unanswerable=not expected and not document)
        if document:
            found = _named(document, documents)
            if found is None:
                raise QuestionSetMalformed(f"{name}/{FILE}, line {number}: the folder has no document '{document}'.")
            judgments[question_id] = {found: 1}
    if not questions:
        raise QuestionSetMalformed(f"{name}/{FILE}: there is no question in it.")
    return QuestionSet(
        name=name,
        documents={key: SetDocument(key, "", "", path=path) for key, path in documents.items()},
        questions=questions,
        judgments=judgments,
        spans={},
        fingerprint=_fingerprint(documents),
    )


def _files(folder: Path) -> list[Path]:
    """The documents, in order of their names."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path != folder / FILE
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def _named(document: str, documents: Mapping[str, Path]) -> str | None:
    """The document of that path, or of that name where only one has it."""
    if document in documents:
        return document
    alike = [key for key, path in documents.items() if path.name == document]
    return alike[0] if len(alike) == 1 else None


def _rows(path: Path, *, shown: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The numbered rows of the file, without blank ones; spreadsheets may separate by semicolons or tabs."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise QuestionSetMalformed(f"{shown}: the bytes are not UTF-8; save it as CSV UTF-8.") from None
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    columns = {(field or "").strip().casefold(): field for field in reader.fieldnames or ()}
    expected = next((columns[one] for one in _EXPECTED if one in columns), None)
    if "question" not in columns or "document" not in columns or expected is None:
        raise QuestionSetMalformed(f"{shown}: the first line is 'question,expected words,document'.")
    wanted = {"question": columns["question"], "expected": expected, "document": columns["document"]}
    for row in reader:
        cells = {key: (row[column] or "").strip() for key, column in wanted.items()}
        if any(cells.values()):
            yield reader.line_num, cells


def _fingerprint(documents: Mapping[str, Path]) -> str:
    """Identifies the documents by their names and bytes."""
    found = hashlib.sha256()
    for key, path in documents.items():
        with path.open("rb") as file:
            found.update(f"{key}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return found.hexdigest()
