"""What was read in the sources: the parts that are quoted for a question, and whether they answer it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.answering.answers.parts import What
from retrieval.types import Source, Span

ANSWERED = 0.38
"""Least probability of the best quote with which the question counts as answered."""


@dataclass(frozen=True, slots=True)
class AskedCell:
    """What is known of the cell of a table that a quote highlights.

    Attributes:
        sure: The probability in (0, 1) that it is the cell asked for, if its row is.
        unit: "thousand", "million" or "billion" where the table says that its amounts are of so many, else "".
        column: The names of its column, the uppermost first, "" for a cell without or of words.
    """

    sure: float
    unit: str = ""
    column: str = ""


@dataclass(frozen=True, slots=True)
class Extract:
    """A part of a source that may answer: `text` is exactly the document version's characters at `span`.

    `score` is the probability in (0, 1) that it answers the question. `highlight` are the characters of the document
    that the span reader takes for the answer, inside `span`. `about` says whether the sentence, its headings or its
    passage name what the question asks about (`app.answering.quoting.subject`); without that no words of it lead.
    `cell` is what is known of the highlighted cell, None where the quote is no row whose columns are named.
    """

    source: Source
    span: Span
    text: str
    score: float
    highlight: Span | None = None
    about: bool = True
    cell: AskedCell | None = None

    @property
    def words(self) -> str:
        """The text of the highlight, "" without one."""
        if self.highlight is None:
            return ""
        at = self.span.start_char
        return self.text[self.highlight.start_char - at : self.highlight.end_char - at]


@dataclass(frozen=True, slots=True)
class QuoteConflict:
    """What two quotes disagree about, and their places among the quotes: the likeliest's, and the other's."""

    what: What
    first: int
    other: int


Decision: TypeAlias = Literal["answered", "unsure", "refused"]


@dataclass(frozen=True, slots=True)
class Selection:
    """The quotes for a question, and the decision.

    Attributes:
        quotes: Likeliest first; none where the question is refused. In reading order where several things are asked for
            (`app.answering.quoting.breadth`).
        score: The best candidate's probability, quoted or not; 0 where there was none.
        outcome: "answered", "unsure" (the quotes are the nearest passages and may not answer) or "refused".
        decides: Whether the span reader has read the sources, so that a refusal needs no language model.
        threshold: The probability from which on the question counts as answered.
        probabilities: Source number, characters and probability of every candidate that was scored.
        conflict: Two of the quotes that disagree.
        title: The line that names the document which the quotes are of, where the question asks about it as a whole.
    """

    quotes: tuple[Extract, ...]
    score: float
    outcome: Decision
    decides: bool = False
    threshold: float = ANSWERED
    probabilities: tuple[tuple[int, Span, float], ...] = ()
    title: Extract | None = None
    conflict: QuoteConflict | None = None

    def probability_of(self, cited: Iterable[tuple[int, Span]]) -> float:
        """The probability that an answer which cites these passages answers: the likeliest candidate's among them.

        Args:
            cited: Source numbers, and characters of their documents.
        """
        return max(
            (
                score
                for number, span in cited
                for candidate, characters, score in self.probabilities
                if number == candidate
                and characters.start_char < span.end_char
                and span.start_char < characters.end_char
            ),
            default=0.0,
        )
