"""Selects the parts of the sources that answer a question, and decides whether they do: without a language model.

The span reader reads every candidate, the embedder those that are promising by then, the judge compares the likeliest
of them; together they give one probability (`app.answering.quoting.score`). An answer costs a few hundred embedder
tokens, what the reader reads, and about 80 tokens for each candidate that is judged.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from app.answering.languages.question_kind import asks_for_words, kind_asked
from app.answering.languages.recognition import is_english
from app.answering.metering.meter import OnBatch
from app.answering.metering.token_usage import Purpose
from app.answering.quoting.antecedents import with_antecedents
from app.answering.quoting.breadth import CLEAR, ONE, Breadth, chosen
from app.answering.quoting.candidates import Candidate, ReadPassage, candidates_of, judged_texts, passages_of
from app.answering.quoting.features import Read, ReadPiece, features_of
from app.answering.quoting.headings import behind_heading, headings_of
from app.answering.quoting.metering import Metering, shares, unmetered
from app.answering.quoting.pointing import UNREAD_MARGIN, marked_in
from app.answering.quoting.score import (
    JUDGED,
    READ,
    UNREAD,
    ScoreWeights,
    certainty,
    judge_values,
    logit,
    probability,
    promise,
    values,
)
from app.answering.quoting.subject import names_subject
from app.answering.quoting.years import of_asked_years
from app.answering.states.reading import ANSWERED, Decision, Extract, Selection
from retrieval.ports import CandidateJudge, Embedder, SpanReader, Vectors
from retrieval.types import Context, Span
from retrieval.words import says_new

NEAREST = 0.07
"""Least probability of the best quote with which quotes are shown at all; below it the question is refused."""

LEADS = 0.5
"""Least probability of the best quote with which marked words of the kind that is asked for lead the answer."""

TOLD = 0.7
"""Least probability of a cell of a row with which it is told from the others by the names of their columns."""

UNCONFIRMED = 0.9
"""Most probability of a quote that does not name what is asked about, or says nothing else: it is not confirmed."""


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """The candidates that were embedded, in reading order.

    Attributes:
        candidates: The candidates.
        values: For each the values by which it is scored (`app.answering.quoting.score`).
        reads: For each what the span reader found in it; empty where it has not read.
        weights: The weights for what has been read of them.
    """

    candidates: tuple[Candidate, ...]
    values: tuple[Mapping[str, float], ...]
    reads: tuple[Read, ...]
    weights: ScoreWeights = UNREAD

    @property
    def read(self) -> bool:
        """Whether the span reader has read them."""
        return self.weights is not UNREAD

    @property
    def highlights(self) -> list[Span | None]:
        """For each candidate the words that the span reader takes for the answer, None without any."""
        return [one.words for one in self.reads] or [None] * len(self.candidates)


Result = TypeVar("Result")


class QuoteSelector:
    """Selects quotes that answer questions. Safe to call from several threads.

    Example:
        >>> selection = QuoteSelector(embedder, reader).select("When was the plant closed?", context)
        >>> selection.outcome, [quote.text for quote in selection.quotes]
        ('answered', ['The plant in Oslo closed on 4 May after a fire.'])
    """

    def __init__(
        self, embedder: Embedder, reader: SpanReader | None = None, judge: CandidateJudge | None = None
    ) -> None:
        """Without a reader, and for questions in a language it does not know, words and the embedder decide.

        `judge` compares only what the reader has read.
        """
        self._embedder = embedder
        self._reader = reader
        self._judge = judge

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
        return OpenSelection(
            self.selecting(
                question,
                context,
                answered=answered,
                nearest=nearest,
                metering=metering,
                breadth=breadth,
                question_vector=question_vector,
            )
        ).read()

    def selecting(
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
        found = yield from self._judging(
            question,
            context,
            metering=metering,
            breadth=breadth,
            question_vector=question_vector,
        )
        return self.chosen_of(question, found, answered=answered, nearest=nearest, breadth=breadth)

    def chosen_of(
        self, question: str, found: ScoredCandidates, *, answered: float, nearest: float, breadth: Breadth = ONE
    ) -> Selection:
        """The selection of what is `judged`; the arguments are those of `select`."""
        if not found.candidates:
            return Selection((), 0.0, "refused", threshold=answered)
        logits = [logit(found.weights.of_candidate, of_candidate) for of_candidate in found.values]
        best = certainty(found.weights.of_best, logits, found.values)
        first = logits.index(max(logits))
        about = [
            not candidate.heading and says_new(question, candidate.core_text) and names_subject(question, candidate)
            for candidate in found.candidates
        ]
        best = best if about[first] else min(best, UNCONFIRMED)
        scores = [
            best if place == first else min(best, probability(one), 1.0 if about[place] else UNCONFIRMED)
            for place, one in enumerate(logits)
        ]
        outcome: Decision = "answered" if best >= answered else "unsure" if best >= nearest else "refused"
        return Selection(
            ()
            if outcome == "refused"
            else with_antecedents(
                [
                    _quote(question, found, scores, about, group)
                    for group in chosen(found.candidates, scores, breadth, first=first, least=nearest)
                ]
            ),
            best,
            outcome,
            decides=found.read,
            threshold=answered,
            probabilities=tuple(
                (candidate.source.number, candidate.span, score)
                for candidate, score in zip(found.candidates, scores, strict=True)
            ),
        )

    def judged(
        self,
        question: str,
        context: Context,
        *,
        question_vector: Callable[[], Vectors],
    ) -> ScoredCandidates:
        """The promising candidates of `context` with the values by which they are scored, for measurements."""
        judging = self._judging(question, context, metering=unmetered, breadth=ONE, question_vector=question_vector)
        return _ended(judging)

    def _judging(
        self,
        question: str,
        context: Context,
        *,
        metering: Metering,
        breadth: Breadth,
        question_vector: Callable[[], Vectors],
    ) -> Generator[None, None, ScoredCandidates]:
        """The most promising candidates, once the first call is metered; see `selecting`."""
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


class OpenSelection:
    """A selection of quotes whose first model call is metered, and not made yet. Used by one thread.

    Attributes:
        reads: Whether a model will read; where it does not, nothing is left to be done.

    Example:
        >>> opened = OpenSelection(selector.selecting(question, context, ...))
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
    """What the reader finds in each candidate: the margin and words of its best piece, its most evidence.

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


def leads(question: str, selection: Selection) -> bool:
    """Whether the marked words of the likeliest quote lead the answer to a question.

    They do where they are likely, and the question asks for a number, a time or a name, or they are very likely, or
    they are the cell of a table that the names of its columns tell. They do not where the quote does not name what the
    question asks about, or where the question says the words itself.
    """
    if selection.outcome != "answered" or not asks_for_words(question):
        return False
    likeliest = selection.quotes[0]
    if not likeliest.about or not says_new(question, likeliest.words):
        return False
    told = likeliest.cell is not None and likeliest.cell.sure >= TOLD
    return selection.score >= (LEADS if told or kind_asked(question) is not None else CLEAR)


def _embedded_text(candidate: Candidate) -> str:
    """The candidate behind its innermost heading, which may name its subject."""
    path = candidate.source.hit.chunk.heading_path
    return f"{path[-1]}: {candidate.core_text}" if path else candidate.core_text


def _quote(
    question: str, found: ScoredCandidates, scores: Sequence[float], about: Sequence[bool], group: Sequence[int]
) -> Extract:
    """The quote of a group of places, which follow each other in one source; a heading above them is no part of it."""
    best = max(group, key=lambda place: scores[place])
    source = found.candidates[best].source
    span = Span(found.candidates[group[0]].span.start_char, found.candidates[group[-1]].span.end_char)
    chunk = source.hit.chunk
    text = chunk.text_at(span)
    marked, cell = marked_in(question, found.candidates[best], found.reads[best]) if found.reads else (None, None)
    start = behind_heading(text, headings_of([chunk]))
    if marked is None or span.start_char + start <= marked.start_char:
        span, text = Span(span.start_char + start, span.end_char), text[start:]
    return Extract(source, span, text, scores[best], marked, about[best], cell)
