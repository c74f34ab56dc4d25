"""Selects the sentences of the sources that answer a question, without a language model.

A sentence's score is a logistic regression over its `features` and over the cosine similarity of sentence and question.
Only the sentences that are promising by their words are embedded: an answer costs a few hundred embedder tokens.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import exp, log1p

from app.answering.locator import AnswerSpan, Located
from app.answering.quoting.features import Features, Sentence, features_of, sentences_of
from retrieval.ports import Embedder
from retrieval.types import Context, Source, Span

THRESHOLD = 0.15
"""Least score that is quoted.

On training questions it refuses 11 % of the answerable ones (4 % of those it would answer correctly), 48 % where
the passage that answers is missing, and 83 % where no passage is about the question.
"""

NEARLY = 0.5  # share of the best score that another sentence needs to be quoted as well
MOST_QUOTED = 3
MOST_EMBEDDED = 12

# Fitted with passages that answer, passages of the same collection that do not, and passages of another one, over
# 100 questions each of SQuADShifts (new Wikipedia), Natural Questions and HotpotQA, the sets counting the same.
_BIAS, _RANK, _SHARE, _LEAD, _FITS, _COSINE, _BEHIND = -5.45, -0.72, 3.05, -2.94, 0.45, 6.24, -1.75


def score_by_words(features: Features) -> float:
    """The part of the logit that needs no embedding of the sentence.

    The feature `lead` is left out: with it, more of the sentences that answer are missed.
    """
    return _RANK * log1p(features.rank) + _SHARE * features.share + _FITS * features.fits


def score(features: Sequence[Features], cosines: Sequence[float]) -> list[float]:
    """Probability in (0, 1) of each sentence to hold the answer; `cosines` are those of sentence and question."""
    best = max(cosines, default=0.0)
    return [
        _logistic(
            _BIAS
            + score_by_words(of_sentence)
            + _LEAD * of_sentence.lead
            + _COSINE * cosine
            + _BEHIND * (best - cosine)
        )
        for of_sentence, cosine in zip(features, cosines, strict=True)
    ]


def _logistic(logit: float) -> float:
    return 1 / (1 + exp(-logit))


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that answers: `text` is exactly the document version's characters at `span`.

    `score` is the probability in (0, 1) that it holds the answer.
    """

    source: Source
    span: Span
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """The sentences to embed, in reading order, and the tokens the embedder reads for them and the question."""

    question: str
    sentences: tuple[Sentence, ...]
    features: tuple[Features, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The quotes that answer a question.

    Attributes:
        quotes: In reading order; none where the sources do not hold the answer.
        score: The best sentence's, quoted or not; 0 where there was none.
        threshold: The least score that is quoted.
        tokens: Number of tokens the embedder read.
    """

    quotes: tuple[Quote, ...]
    score: float
    threshold: float
    tokens: int

    @property
    def likeliest_first(self) -> tuple[Quote, ...]:
        """The quotes by falling score."""
        return tuple(sorted(self.quotes, key=lambda quote: -quote.score))

    def as_pointers(self) -> Located:
        """The quotes as a pointer for a language model. It refuses nothing: sentences are no proof of an answer."""
        spans = tuple(AnswerSpan(quote.source, quote.span, quote.text, quote.score) for quote in self.likeliest_first)
        return Located(spans, self.threshold, self.tokens, decides=False)


Metering = Callable[[int], AbstractContextManager[object]]
"""Meters the embedder's call that runs inside it; the argument is the tokens the call reads."""


class SentenceSelector:
    """Selects sentences that answer questions. Safe to call from several threads.

    Example:
        >>> selection = SentenceSelector(embedder).select("When was the plant closed?", context, None)
        >>> [quote.text for quote in selection.quotes]
        ['The plant in Oslo closed on 4 May after a fire.']
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def select(
        self,
        question: str,
        context: Context,
        located: Located | None,
        *,
        threshold: float = THRESHOLD,
        metering: Metering = lambda _: nullcontext(),
    ) -> Selection:
        """The sentences of `context` that answer `question`.

        Args:
            question: Its text.
            context: The sources presented.
            located: The span reader's findings, None where it did not read. The sentences around them are
                selected and nothing is embedded; but where it found words in headings alone, which are not quoted,
                the embedder decides.
            threshold: The least score that is quoted.
            metering: Surrounds the embedder's call, if one is made.
        """
        if located is not None:
            pointed = _around(located, context)
            nothing_found = located.decides and not located.likely
            if pointed.quotes or nothing_found:
                return pointed
        candidates = self.candidates(question, context)
        if not candidates.sentences:
            return Selection((), score=0.0, threshold=threshold, tokens=0)
        with metering(candidates.tokens):
            return self._best(candidates, threshold=threshold)

    def candidates(self, question: str, context: Context) -> Candidates:
        """The sentences that `select` embeds, at most `MOST_EMBEDDED`; nothing is embedded yet."""
        sentences = sentences_of(context.sources)
        features = features_of(question, sentences)
        ranked = sorted(range(len(sentences)), key=lambda place: (-score_by_words(features[place]), place))
        chosen = sorted(ranked[:MOST_EMBEDDED])
        texts = [_embedded_text(sentences[place]) for place in chosen]
        counted = [min(self._embedder.count_tokens(text), self._embedder.info.max_tokens) for text in texts]
        tokens = self._embedder.count_query(question) + self._embedder.count_documents(texts, counted=counted)
        return Candidates(
            question=question,
            sentences=tuple(sentences[place] for place in chosen),
            features=tuple(features[place] for place in chosen),
            tokens=tokens if chosen else 0,
        )

    def _best(self, candidates: Candidates, *, threshold: float) -> Selection:
        vectors = self._embedder.embed_documents([_embedded_text(sentence) for sentence in candidates.sentences])
        cosines = [float(cosine) for cosine in vectors @ self._embedder.embed_query(candidates.question)]
        scores = score(candidates.features, cosines)
        best = max(scores)
        quotes = _quotes(candidates.sentences, scores) if best >= threshold else ()
        return Selection(quotes, score=best, threshold=threshold, tokens=candidates.tokens)


def _embedded_text(sentence: Sentence) -> str:
    """The sentence behind its innermost heading, which may name its subject."""
    path = sentence.source.hit.chunk.heading_path
    return f"{path[-1]}: {sentence.text}" if path else sentence.text


def _around(located: Located, context: Context) -> Selection:
    """The sentences that overlap spans of the span reader, each with their largest probability."""
    sentences = sentences_of(context.sources)
    scores = [
        max(
            (
                span.probability
                for span in located.spans
                if span.source.number == sentence.source.number
                and sentence.span.start_char < span.span.end_char
                and span.span.start_char < sentence.span.end_char
            ),
            default=0.0,
        )
        for sentence in sentences
    ]
    quotes = _quotes(sentences, scores) if located.likely and any(scores) else ()
    return Selection(quotes, score=located.probability, threshold=located.threshold, tokens=0)


def _quotes(sentences: Sequence[Sentence], scores: Sequence[float]) -> tuple[Quote, ...]:
    """The best sentence and others nearly as good, each text once, at most `MOST_QUOTED`, in reading order."""
    best = max(scores)
    kept: list[int] = []
    texts: set[str] = set()
    for place in sorted(range(len(sentences)), key=lambda place: (-scores[place], place)):
        if len(kept) == MOST_QUOTED or scores[place] < NEARLY * best or not scores[place]:
            break
        folded = " ".join(sentences[place].text.casefold().split())
        if folded not in texts:
            texts.add(folded)
            kept.append(place)
    return tuple(
        Quote(sentences[place].source, sentences[place].span, sentences[place].text, scores[place])
        for place in sorted(kept)
    )
