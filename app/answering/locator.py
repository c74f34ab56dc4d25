"""Where the presented sources answer the question: what the reader points at, and what reading cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answering.calls import CallNumber
from app.answering.question import Question
from app.answering.question_kind import asks_for_words
from app.types import Operation
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Reader
from retrieval.types import Pointer, Source, Span


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """Words of a source that may be the answer: exactly the document version's characters at `span`.

    `probability` in [0, 1] is that the source holds an answer.
    """

    source: Source
    span: Span
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Located:
    """What was pointed at, likeliest first, and the tokens that were read for it.

    `threshold` is the least probability of the best with which an answer should be given. `settles` says that
    without one there is none to be given; otherwise that is left to whoever answers.
    """

    spans: tuple[AnswerSpan, ...]
    threshold: float
    tokens: int
    settles: bool = True

    @property
    def probability(self) -> float:
        """That the sources hold an answer at all."""
        return self.spans[0].probability if self.spans else 0.0

    @property
    def likely(self) -> tuple[AnswerSpan, ...]:
        """Those of the spans with which an answer should be given."""
        return tuple(span for span in self.spans if span.probability >= self.threshold)

    @property
    def silent(self) -> bool:
        """Whether it is settled that no answer should be given."""
        return self.settles and not self.likely


class Locator:
    """Asks the reader where the sources of a question answer it. One instance serves every request."""

    def __init__(self, reader: Reader, *, ledger: Ledger) -> None:
        self._reader = reader
        self._ledger = ledger

    def located(self, question: Question, sources: Sequence[Source], *, abstention: float | None) -> Located | None:
        """Where `sources` answer `question`; None for a question that no few words answer, and for other languages.

        Args:
            question: Who pays for it, and what is asked.
            sources: As they are presented.
            abstention: The probability of there being no answer from which on none should be given; None leaves that
                to the reader.

        Raises:
            StoreUnavailable, StorageFull: The call could not be written down and was not made.
        """
        if not sources or not asks_for_words(question.text):
            return None
        threshold = self._reader.threshold if abstention is None else 1 - abstention
        passages = [_Passage.of(source) for source in sources]
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
class _Passage:
    """A source as the reader reads it: its innermost heading, which may name whom it is about, and what it shows.

    `pieces` are (first character in `text`, span of the document version).
    """

    source: Source
    text: str
    pieces: tuple[tuple[int, Span], ...]

    @classmethod
    def of(cls, source: Source) -> "_Passage":
        chunk = source.hit.chunk
        text = f"{chunk.heading_path[-1]}\n" if chunk.heading_path else ""
        pieces = []
        for kept in source.spans:
            pieces.append((len(text), kept))
            text += chunk.text[kept.start_char - chunk.start_char : kept.end_char - chunk.start_char] + "\n"
        return cls(source, text.rstrip(), tuple(pieces))

    def at(self, pointer: Pointer) -> AnswerSpan | None:
        """What is pointed at in the document; None where that is the heading. A gap ends an answer."""
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
