"""Reads passages for the words that answer a question: the span reader, the embedder and the judge, each metered.

The span reader reads every candidate, the embedder those that are promising by then, the judge compares the likeliest
of them. An answer costs a few hundred embedder tokens, what the reader reads, and about 80 tokens for each candidate
that is judged. What they have read is decided on by `app.answering.quoting.selection`.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from app.answering.languages.recognition import is_english
from app.answering.metering.meter import CallsClosed, Meter, OnBatch
from app.answering.metering.token_usage import Purpose
from app.answering.quoting.breadth import ONE, Breadth, breadth_of
from app.answering.quoting.candidates import Candidate, ReadPassage, candidates_of, judged_texts, passages_of
from app.answering.quoting.features import Read, ReadPiece, features_of
from app.answering.quoting.metering import Metering, shares, unmetered
from app.answering.quoting.pointing import UNREAD_MARGIN
from app.answering.quoting.score import JUDGED, READ, UNREAD, judge_values, logit, promise, values
from app.answering.quoting.selection import NEAREST, ScoredCandidates, selection_of
from app.answering.quoting.years import of_asked_years
from app.answering.states.reading import ANSWERED, Selection
from app.answering.states.sources import Grounding
from app.types import DocumentShare
from retrieval.ports import CandidateJudge, Embedder, SpanReader, Vectors
from retrieval.types import Context, Span

Result = TypeVar("Result")


class OpenSelection:
    """A selection of quotes whose first model call is metered, and not made yet. Used by one thread.

    Attributes:
        reads: Whether a model will read; where it does not, nothing is left to be done.

    Example:
        >>> opened = passage_reader.open(grounding, meter=meter)
        >>> selection = opened.read()
    """

    def __init__(self, steps: Generator[None, None, Selection]) -> None:
        """Begin the steps; raises as they do."""
        self._steps = steps
        self._ended: Selection | None = None
        try:
            next(steps)
        except StopIteration as ended:
            self._ended = ended.value
        self.reads = self._ended is None

    def read(self) -> Selection:
        """The selection, once the models have read. Blocks; raises as the steps do."""
        if self._ended is None:
            self._ended = _ended(self._steps)
        return self._ended


class PassageReader:
    """Reads sources for quotes that answer. One instance serves every request.

    Its selection is the answer where quotes answer; where a language model answers, it points the model at the
    likeliest words, tells how likely the question is answered, and follows answers of which nothing is verified.

    Example:
        >>> passage_reader = PassageReader(embedder=embedder, reader=reader)
        >>> selection = passage_reader.open(grounding, meter=meter).read()
        >>> selection.outcome, [quote.text for quote in selection.quotes]
        ('answered', ['The plant in Oslo closed on 4 May after a fire.'])
    """

    def __init__(
        self, *, embedder: Embedder, reader: SpanReader | None = None, judge: CandidateJudge | None = None
    ) -> None:
        """Without a reader, and for questions in a language it does not know, words and the embedder decide.

        `judge` compares only what the reader has read.
        """
        self._embedder = embedder
        self._reader = reader
        self._judge = judge

    def open(self, grounding: Grounding, *, meter: Meter, abstention: float | None = None) -> OpenSelection:
        """Select the parts of the sources that answer, and tell whether they do: the first model is about to read.

        Args:
            grounding: The question as it was understood, whose principal pays, and its sources.
            meter: Meters the models that read. Closing it ends the selection with the batch that is being read; the
                result then has no quotes.
            abstention: The probability of there being no answer from which on the question is refused; None takes the
                thresholds of `app.answering.quoting.selection`.

        Raises:
            BudgetExceeded: Nothing is left for a call; a later one raises where the selection is read.
            StoreUnavailable, StorageFull: A call could not be written to the ledger, and was not made.
        """
        return OpenSelection(self._metered(grounding, meter, answered_from(abstention)))

    def select(
        self,
        question: str,
        context: Context,
        *,
        answered: float = ANSWERED,
        nearest: float = NEAREST,
        metering: Metering = unmetered,
        breadth: Breadth = ONE,
        question_vector: Callable[[], Vectors],
    ) -> Selection:
        """The parts of `context` that answer `question`, and whether they do.

        Args:
            question: Its text.
            context: The sources presented.
            answered: The probability from which on the question is answered.
            nearest: The probability from which on quotes are shown.
            metering: Surrounds each call of a model.
            breadth: How many candidates are quoted, and which.
            question_vector: The (dim,) unit vector of `question`; called where candidates are compared with it.
        """
        return _ended(
            self._selecting(
                question,
                context,
                answered=answered,
                nearest=nearest,
                metering=metering,
                breadth=breadth,
                question_vector=question_vector,
            )
        )

    def scored(self, question: str, context: Context, *, question_vector: Callable[[], Vectors]) -> ScoredCandidates:
        """The promising candidates of `context` with the values by which they are scored, for measurements."""
        return _ended(
            self._scoring(question, context, metering=unmetered, breadth=ONE, question_vector=question_vector)
        )

    def _metered(self, grounding: Grounding, meter: Meter, answered: float) -> Generator[None, None, Selection]:
        @contextmanager
        def metered(
            purpose: Purpose, model: str, revision: str, tokens: int, *, documents: tuple[DocumentShare, ...] = ()
        ) -> Iterator[OnBatch]:
            meter.require_open()
            with meter.reading(purpose, model=model, revision=revision, tokens=tokens, documents=documents) as on_batch:
                yield on_batch

        question = grounding.question.text
        try:
            return (
                yield from self._selecting(
                    question,
                    grounding.context,
                    answered=answered,
                    nearest=min(NEAREST, answered),
                    metering=metered,
                    breadth=breadth_of(question, grounding.question.length),
                    question_vector=grounding.retrieved.vector,
                )
            )
        except CallsClosed:
            read = any(call.purpose is Purpose.LOCATE for call in meter.calls)
            return Selection((), 0.0, "refused", decides=read, threshold=answered)

    def _selecting(
        self,
        question: str,
        context: Context,
        *,
        answered: float,
        nearest: float,
        metering: Metering,
        breadth: Breadth,
        question_vector: Callable[[], Vectors],
    ) -> Generator[None, None, Selection]:
        """The steps of `select`: yields once, when the first call of a model is metered and before it is made."""
        found = yield from self._scoring(
            question, context, metering=metering, breadth=breadth, question_vector=question_vector
        )
        return selection_of(question, found, answered=answered, nearest=nearest, breadth=breadth)

    def _scoring(
        self,
        question: str,
        context: Context,
        *,
        metering: Metering,
        breadth: Breadth,
        question_vector: Callable[[], Vectors],
    ) -> Generator[None, None, ScoredCandidates]:
        """The most promising candidates, once the first call is metered; see `_selecting`."""
        candidates = of_asked_years(question, candidates_of(context.sources))
        if not candidates:
            return ScoredCandidates((), (), ())
        read: list[Read] | None = None
        if self._reader is not None and is_english(question):
            passages = passages_of(candidates)
            reader = self._reader
            counted = [reader.count_tokens(question, [passage.text]) for passage in passages]
            of_documents = shares([candidates[passage.candidates[0]] for passage in passages], counted)
            with metering(
                Purpose.LOCATE, reader.model, reader.revision, sum(counted), documents=of_documents
            ) as on_batch:
                yield
                read = _read(reader, question, passages, len(candidates), on_batch=on_batch)
        features = features_of(question, candidates, read)
        ranked = sorted(range(len(candidates)), key=lambda place: (-promise(features[place]), place))
        embedded = sorted(ranked[: breadth.embedded])
        texts = [_embedded_text(candidates[place]) for place in embedded]
        lengths = [min(self._embedder.count_tokens(text), self._embedder.info.max_tokens) for text in texts]
        tokens = self._embedder.count_documents(texts, counted=lengths)
        info = self._embedder.info
        with metering(Purpose.EXTRACT, info.model, info.revision, tokens):
            if read is None:
                yield
            vectors = self._embedder.embed_documents(texts)
        cosines = [float(cosine) for cosine in vectors @ question_vector()]
        best = max(cosines)
        found = ScoredCandidates(
            tuple(candidates[place] for place in embedded),
            tuple(
                values(features[place], cosine=cosine, best_cosine=best)
                for place, cosine in zip(embedded, cosines, strict=True)
            ),
            () if read is None else tuple(read[place] for place in embedded),
            UNREAD if read is None else READ,
        )
        return self._compared(question, found, metering, most=breadth.judged) if found.read else found

    def _compared(self, question: str, found: ScoredCandidates, metering: Metering, *, most: int) -> ScoredCandidates:
        """The same once the judge has compared the `most` likeliest; the others count as the least likely of these."""
        if self._judge is None:
            return found
        logits = [logit(found.weights.of_candidate, of_candidate) for of_candidate in found.values]
        ranked = sorted(range(len(logits)), key=lambda place: (-logits[place], place))
        places = sorted(ranked[:most])
        texts = judged_texts([found.candidates[place] for place in places])
        judge = self._judge
        with metering(Purpose.COMPARE, judge.model, judge.revision, judge.count_tokens(question, texts)):
            scores = dict(zip(places, judge.judge(question, texts), strict=True))
        best, least = max(scores.values()), min(scores.values())
        return replace(
            found,
            values=tuple(
                {**of_candidate, **judge_values(scores.get(place, least), best=best)}
                for place, of_candidate in enumerate(found.values)
            ),
            weights=JUDGED,
        )


def answered_from(abstention: float | None) -> float:
    """The probability of an answer from which on a question counts as answered, by that of none which refuses it."""
    return ANSWERED if abstention is None else 1 - abstention


def _ended(steps: Generator[None, None, Result]) -> Result:
    """The result of steps, all of which are taken."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: Result = ended.value
            return result


def _read(
    reader: SpanReader, question: str, passages: Sequence[ReadPassage], count: int, *, on_batch: OnBatch | None
) -> list[Read]:
    """The reader's findings for each candidate: the margin and words of its best piece, its most evidence.

    For a reader that does not tag, the margin stands for the evidence.
    """
    found = [Read(UNREAD_MARGIN, UNREAD_MARGIN)] * count
    pointers = reader.mark(
        question,
        [passage.text for passage in passages],
        [passage.pieces for passage in passages],
        on_batch=on_batch,
    )
    for passage, of_passage in zip(passages, pointers, strict=True):
        for owner, piece, start, pointer in zip(
            passage.owners, passage.pieces, passage.starts, of_passage, strict=True
        ):
            if pointer is None:
                continue
            before = found[owner]
            margin, words = before.margin, before.words
            first = start + pointer.start - piece.start_char
            here = Span(first, first + pointer.end - pointer.start)
            if words is None or pointer.margin > margin:
                margin, words = pointer.margin, here
            evidence = pointer.margin if pointer.evidence is None else pointer.evidence
            pieces = (*before.pieces, ReadPiece(here, pointer.margin))
            found[owner] = Read(margin, max(before.evidence, evidence), words, pieces)
    return found


def _embedded_text(candidate: Candidate) -> str:
    """The candidate behind its innermost heading, which may name its subject."""
    path = candidate.source.hit.chunk.heading_path
    return f"{path[-1]}: {candidate.core_text}" if path else candidate.core_text
