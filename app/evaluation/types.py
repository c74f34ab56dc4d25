"""The data types of evaluation: question sets, gold evidence, options, and errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import AppError
from retrieval.types import SearchMode


@dataclass(frozen=True, slots=True)
class SetDocument:
    """One document of a question set's corpus: its text, or the file at `path`, which is ingested as it is."""

    id: str
    title: str
    text: str
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """One question. `answers` are alternatives; `metadata` holds only the scalar values, as text."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    unanswerable: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GoldSpan:
    """Gold evidence: `text` at characters `[start, end)` of a document.

    Read from a set, offsets count in the corpus text; once located, in the canonical text.
    """

    document_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A corpus, questions, which documents answer them, and where.

    `judgments[question id][document id]` is a grade, relevant from 1. `fingerprint` identifies the corpus.
    """

    name: str
    documents: Mapping[str, SetDocument]
    questions: Mapping[str, SetQuestion]
    judgments: Mapping[str, Mapping[str, int]]
    spans: Mapping[str, tuple[GoldSpan, ...]]
    fingerprint: str

    def relevant(self, question_id: str) -> frozenset[str]:
        """Ids of the documents judged relevant to a question."""
        return frozenset(document for document, grade in self.judgments.get(question_id, {}).items() if grade > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a measurement.

    `questions` and `answer_questions` bound the sample of each set; `top_k` documents are ranked,
    `context_top_k` chunks are compressed, to each of `budgets` (percent of their tokens);
    `context_tokens` and `output_tokens` bound the prompts and answers of `answers`, None being the application's own.
    `presented` asks each question of that many documents (`presentation.cases`) instead of all; `concurrency`
    questions are answered at a time; `answers_only` leaves rankings and contexts out. From a probability of
    `abstention_threshold` on an answer is refused, None being the application's own; `strict` answers leave out
    unverified sentences.
    """

    questions: int = 600
    seed: int = 0
    modes: tuple[SearchMode, ...] = (SearchMode.HYBRID,)
    top_k: int = 20
    context_top_k: int = 8
    budgets: tuple[int, ...] = (100, 50, 25)
    answers: bool = False
    answer_questions: int = 100
    context_tokens: int | None = None
    output_tokens: int | None = None
    by: str | None = None
    answers_only: bool = False
    presented: int | None = None
    concurrency: int = 1
    abstention_threshold: float | None = None
    strict: bool = False


class QuestionSetMalformed(AppError):
    """A question set is malformed."""


class RunMalformed(AppError):
    """A file is not the record of a run."""
