"""Finds the words in the presented sources that answer a question, with a span reader whose calls are metered."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answering.calls import CallNumber
from app.answering.question import Question
from app.answering.question_kind import asks_for_words
from app.types import Operation
from app.usage.ledger.ledger import Ledger
from retrieval.ports import SpanReader
from retrieval.types import Pointer, Source, Span


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """Words of a source that may be the answer.

    Attributes:
        source: The source.
        span: Their characters in the document version.
        text: Exactly those characters.
        probability: The probability in [0, 1] that the source holds an answer.
    """

    source: Source
    span: Span
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Located:
    """The spans found in the sources of a question.

    Attributes:
        spans: Likeliest first.
        threshold: The least probability of the likeliest span with which an answer should be given.
        tokens: Number of tokens the model read.
        decides: Whether the lack of a likely span settles that there is no answer; otherwise the generator decides.
    """

    spans: tuple[AnswerSpan, ...]
    threshold: float
    tokens: int
    decides: bool = True

    @property
    def probability(self) -> float:
        """The probability in [0, 1] that the sources hold an answer at all."""
        return self.spans[0].probability if self.spans else 0.0

    @property
    def likely(self) -> tuple[AnswerSpan, ...]:
        """The spans that reach the threshold."""
        return tuple(span for span in self.spans if span.probability >= self.threshold)


class Locator:
    """Has the span reader read the sources of questions. One instance serves every request.

    Example:
        >>> located = Locator(span_reader, ledger=ledger).locate(question, context.sources, abstention=None)
        >>> located.spans[0].text
        '4 May'
    """

    def __init__(self, reader: SpanReader, *, ledger: Ledger) -> None:
        self._reader = reader
        self._ledger = ledger

    def locate(self, question: Question, sources: Sequence[Source], *, abstention: float | None) -> Located | None:
        """Where `sources` answer `question`; None unless it is in English and a few words can answer it.

        Args:
            question: As it was asked; its principal pays.
            sources: Those presented.
            abstention: The probability of there being no answer from which on the question is refused; None takes
                the span reader's own threshold.

        Raises:
            StoreUnavailable, StorageFull: The call could not be written to the ledger, and was not made.
        """
        if not sources or not asks_for_words(question.text):
            return None
        threshold = self._reader.threshold if abstention is None else 1 - abstention
        passages = [Passage.of(source) for source in sources]
        texts = [passage.text for passage in passages]
        tokens = self._reader.count_tokens(question.text, texts)
        reservation = question.reservation(
            call=CallNumber.READ,
            operation=Operation.JUDGE,
            model=self._reader.model,
            tokenizer_revision=self._reader.revision,
            input_tokens=tokens,
        )
        with self._ledger.metered(reservation):
            pointers = self._reader.read(question.text, texts)
        found = [
            span
            for passage, pointer in zip(passages, pointers, strict=True)
            if pointer is not None and (span := passage.at(pointer)) is not None
        ]
        found.sort(key=lambda span: -span.probability)
        return Located(tuple(found), threshold, tokens)


@dataclass(frozen=True, slots=True)
class Passage:
    """A source as the span reader reads it: its innermost heading, which may name its subject, and its text.

    Attributes:
        source: The source.
        text: The text that the span reader reads.
        pieces: For each presented span its first character in `text`, and the span in the document version.
    """

    source: Source
    text: str
    pieces: tuple[tuple[int, Span], ...]

    @classmethod
    def of(cls, source: Source) -> "Passage":
        """The passage of a source."""
        chunk = source.hit.chunk
        text = f"{chunk.heading_path[-1]}\n" if chunk.heading_path else ""
        pieces = []
        for kept in source.spans:
            pieces.append((len(text), kept))
            text += chunk.text[kept.start_char - chunk.start_char : kept.end_char - chunk.start_char] + "\n"
        return cls(source, text.rstrip(), tuple(pieces))

    def at(self, pointer: Pointer) -> AnswerSpan | None:
        """The words that `pointer` marks, up to the end of their span; None where it points at the heading."""
        for first, kept in self.pieces:
            if not first <= pointer.start < first + kept.end_char - kept.start_char:
                continue
            start = kept.start_char + pointer.start - first
            end = min(kept.end_char, kept.start_char + pointer.end - first)
            chunk = self.source.hit.chunk
            text = chunk.text[start - chunk.start_char : end - chunk.start_char]
            trimmed = text.strip()
            start += len(text) - len(text.lstrip())
            return (
                AnswerSpan(self.source, Span(start, start + len(trimmed)), trimmed, pointer.probability)
                if trimmed
                else None
            )
        return None
