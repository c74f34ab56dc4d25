"""The questions, the documents that answer them, and the two halves in which they are used.

The questions were written by reading the files, each so that it can be asked of the whole library: it names its
subject, not its file. One half serves while the product is built. The other is set aside for measuring alone.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Half = Literal["building", "aside"]

DATA = Path(__file__).with_name("questions.jsonl")

KINDS = (
    "number name date form cell list definition what why how summary yesno compare unanswerable".split()  # noqa: SIM905
)
"""The kinds of question; `form` asks for a field, `cell` for one or more cells of a table."""

_SEED = "plain questions 53"
"""Chosen before any answer was seen, so that each kind is spread evenly over the halves."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    `documents` are paths below the folder of documents. Any one of them may answer; where none does, the first is the
    one about the subject. `pattern` is a regular expression, without regard to case, for words that answer.
    """

    documents: tuple[str, ...]
    text: str
    kind: str
    pattern: str | None

    @property
    def answerable(self) -> bool:
        """Whether a document of the library holds the answer."""
        return self.pattern is not None

    @property
    def half(self) -> Half:
        """The half of the question, by a hash of its text."""
        return "building" if hashlib.sha256(f"{_SEED}: {self.text}".encode()).digest()[0] % 2 else "aside"

    @property
    def filenames(self) -> frozenset[str]:
        """The names under which the documents with the answer are uploaded."""
        return frozenset(Path(document).name for document in self.documents)


def load(path: Path = DATA) -> tuple[Question, ...]:
    """All questions, of both halves.

    Raises:
        ValueError: A line contradicts itself, names an unknown kind, or holds no valid pattern.
    """
    with path.open(encoding="utf-8") as lines:
        return tuple(_question(json.loads(line)) for line in lines)


def select(
    questions: Iterable[Question], *, half: str, kinds: Sequence[str] = KINDS, limit: int | None = None
) -> tuple[Question, ...]:
    """The questions of `half` ("building", "aside" or "all") and of these kinds, or `limit` of them, evenly spaced.

    Raises:
        ValueError: There is no such kind.
    """
    if unknown := set(kinds) - set(KINDS):
        raise ValueError(f"unknown kinds: {', '.join(sorted(unknown))}")
    chosen = [question for question in questions if half in {"all", question.half} and question.kind in kinds]
    if limit is None or limit >= len(chosen):
        return tuple(chosen)
    return tuple(chosen[number * len(chosen) // limit] for number in range(limit))


def documents_of(questions: Sequence[Question]) -> tuple[str, ...]:
    """The paths of the documents that the questions are about, sorted."""
    return tuple(sorted({document for question in questions for document in question.documents}))


def _question(row: dict[str, object]) -> Question:
    documents, pattern = row["documents"], row["pattern"]
    assert isinstance(documents, list)
    assert pattern is None or isinstance(pattern, str)
    question = Question(tuple(documents), str(row["question"]), str(row["kind"]), pattern)
    if question.kind not in KINDS:
        raise ValueError(f"unknown kind {question.kind}: {question.text}")
    if not question.answerable == row["answerable"] == (question.kind != "unanswerable"):
        raise ValueError(f"answerable or not: {question.text}")
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(f"no pattern: {question.text}") from error
    return question
