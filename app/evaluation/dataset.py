"""Reads a question set in the BEIR layout (Thakur et al. 2021, arXiv:2104.08663), with answers and gold spans.

A folder holds `corpus.jsonl` {_id, title, text}, `queries.jsonl` {_id, text, answers?, unanswerable?,
metadata?}, `qrels.tsv` (or BEIR's `qrels/test.tsv`) and perhaps `spans.jsonl` {query_id, corpus_id, start, end, text}.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from app.evaluation.question_folder import is_question_folder, read_question_folder
from app.evaluation.types import GoldSpan, QuestionSet, QuestionSetMalformed, SetDocument, SetQuestion

_QRELS_COLUMNS = 3
_Value = TypeVar("_Value")


def read_questions(folder: Path) -> QuestionSet:
    """The question set in `folder`, in the BEIR layout or as documents with `questions.csv`.

    Raises:
        QuestionSetMalformed: A file is missing or wrong; the message names it and the line.
    """
    return read_question_folder(folder) if is_question_folder(folder) else read_question_set(folder)


def read_question_set(folder: Path) -> QuestionSet:
    """The question set in `folder`, checked: every id unique, every judgment and span about known ones.

    A row of `spans.jsonl` without offsets (a label about a whole document) is left out.

    Raises:
        QuestionSetMalformed: A file is missing or wrong; the message names it and the line.
    """
    if not folder.is_dir():
        raise QuestionSetMalformed(f"{folder.name}: there is no such folder.")
    name = folder.resolve().name
    corpus = _File(folder / "corpus.jsonl", shown=f"{name}/corpus.jsonl")
    documents: dict[str, SetDocument] = {}
    for number, row in corpus.objects():
        document = SetDocument(
            corpus.text(row, "_id", number),
            corpus.text(row, "title", number, default=""),
            corpus.text(row, "text", number, default=""),
        )
        corpus.add(documents, document.id, document, number)
    queries = _File(folder / "queries.jsonl", shown=f"{name}/queries.jsonl")
    questions: dict[str, SetQuestion] = {}
    for number, row in queries.objects():
        question = _question(queries, row, number)
        queries.add(questions, question.id, question, number)
    if not documents or not questions:
        raise QuestionSetMalformed(f"{name}: a question set has at least one document and one question.")
    return QuestionSet(
        name=name,
        documents=documents,
        questions=questions,
        judgments=_judgments(folder, name, documents, questions),
        spans=_spans(folder, name, documents, questions),
        fingerprint=hashlib.sha256(corpus.path.read_bytes()).hexdigest(),
    )


def sample(
    question_set: QuestionSet, *, limit: int, seed: int, wanted: Callable[[SetQuestion], bool]
) -> list[SetQuestion]:
    """At most `limit` of the wanted questions, by a hash of seed and id.

    A question's place depends on nothing but its id, so a larger sample holds every smaller one
    and a changed set keeps most of its sample.
    """
    chosen = [question for question in question_set.questions.values() if wanted(question)]
    chosen.sort(key=lambda question: hashlib.blake2b(f"{seed}:{question.id}".encode(), digest_size=16).digest())
    return chosen[:limit]


def _question(file: "_File", row: dict[str, Any], number: int) -> SetQuestion:
    answers = row.get("answers") or []
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise file.error(number, "answers is a list of strings")
    unanswerable = row.get("unanswerable", False)
    if not isinstance(unanswerable, bool):
        raise file.error(number, "unanswerable is true or false")
    metadata = row.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise file.error(number, "metadata is an object")
    return SetQuestion(
        id=file.text(row, "_id", number),
        text=file.text(row, "text", number),
        answers=tuple(file.checked(answer, number) for answer in answers if answer.strip()),
        unanswerable=unanswerable,
        metadata={
            key: file.checked(str(value), number)
            for key, value in metadata.items()
            if isinstance(value, str | int | float)
        },
    )


def _judgments(
    folder: Path, name: str, documents: dict[str, SetDocument], questions: dict[str, SetQuestion]
) -> dict[str, dict[str, int]]:
    path, shown = folder / "qrels.tsv", f"{name}/qrels.tsv"
    if not path.exists() and (folder / "qrels" / "test.tsv").exists():
        path, shown = folder / "qrels" / "test.tsv", f"{name}/qrels/test.tsv"
    file = _File(path, shown=shown)
    judgments: dict[str, dict[str, int]] = {}
    for number, line in file.lines():
        columns = line.split("\t")
        if number == 1 and columns[0] == "query-id":
            continue
        if len(columns) != _QRELS_COLUMNS:
            raise file.error(number, "three columns separated by tabs are wanted: query-id, corpus-id, score")
        question, document, grade = columns
        file.known(question, questions, "query", number)
        file.known(document, documents, "document", number)
        try:
            judgments.setdefault(question, {})[document] = int(grade)
        except ValueError:
            raise file.error(number, "the score is an integer") from None
    return judgments


def _spans(
    folder: Path, name: str, documents: dict[str, SetDocument], questions: dict[str, SetQuestion]
) -> dict[str, tuple[GoldSpan, ...]]:
    if not (folder / "spans.jsonl").exists():
        return {}
    file = _File(folder / "spans.jsonl", shown=f"{name}/spans.jsonl")
    spans: dict[str, list[GoldSpan]] = {}
    for number, row in file.objects():
        question, document = file.text(row, "query_id", number), file.text(row, "corpus_id", number)
        file.known(question, questions, "query", number)
        file.known(document, documents, "document", number)
        if "start" not in row and "end" not in row:
            continue
        start, end = row.get("start"), row.get("end")
        length = len(documents[document].text)
        if type(start) is not int or type(end) is not int or not 0 <= start < end <= length:
            raise file.error(number, f"start and end are offsets with 0 <= start < end <= {length}, the text's length")
        text = documents[document].text[start:end]
        if row.get("text", text) != text:
            raise file.error(number, "text is not what stands at start and end in the document")
        if text.strip():
            spans.setdefault(question, []).append(GoldSpan(document, start, end, text))
    return {question: tuple(found) for question, found in spans.items()}


class _File:
    """Reads one file of a set; its errors name the file and line."""

    def __init__(self, path: Path, *, shown: str) -> None:
        self.path = path
        self._shown = shown

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yields numbered lines that are not blank."""
        try:
            with self.path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        yield number, self._decoded(line, number).rstrip("\r\n")
        except OSError:
            raise QuestionSetMalformed(f"{self._shown}: the file cannot be opened.") from None

    def _decoded(self, line: bytes, number: int) -> str:
        try:
            return line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise self.error(number, "the bytes are not UTF-8") from None

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields numbered JSON objects, one per line."""
        for number, line in self.lines():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise self.error(number, "the line is not JSON") from None
            if not isinstance(row, dict):
                raise self.error(number, "the line is not a JSON object")
            yield number, row

    def text(self, row: dict[str, Any], key: str, number: int, *, default: str | None = None) -> str:
        """A string of a row; required, and not blank, unless there is a default."""
        value = row.get(key, default)
        if not isinstance(value, str):
            raise self.error(number, f"{key} is a string")
        if default is None and not value.strip():
            raise self.error(number, f"{key} is empty")
        return self.checked(value, number)

    def checked(self, value: str, number: int) -> str:
        """Returns `value` if it is valid Unicode; JSON can escape a lone surrogate."""
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self.error(number, "the text holds half a surrogate pair, which is no character") from None
        return value

    def add(self, into: dict[str, _Value], key: str, value: _Value, number: int) -> None:
        """Stores a value under an id that must be new."""
        if "\0" in key:
            raise self.error(number, "the _id holds a NUL character")
        if key in into:
            raise self.error(number, "the _id was used before")
        into[key] = value

    def known(self, key: str, among: dict[str, Any], kind: str, number: int) -> None:
        """Raises an error for an unknown id."""
        if key not in among:
            raise self.error(number, f"no {kind} has this id")

    def error(self, number: int, what: str) -> QuestionSetMalformed:
        """An error that names the file and line."""
        return QuestionSetMalformed(f"{self._shown}, line {number}: {what}.")
