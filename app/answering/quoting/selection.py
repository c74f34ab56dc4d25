"""Answers without a language model: the best sentences of the sources, quoted.

What a sentence is worth is a logistic regression over what `app.answering.quoting.features` sees of it and
over the embedder's cosine of sentence and question. Only the sentences that may win by the
words are embedded, so an answer costs a few hundred embedder tokens and no generated one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log1p

from app.answering.locator import Located
from app.answering.quoting.features import Features, Sentence, features_of, sentences_of
from retrieval.ports import Embedder
from retrieval.types import Context, Source, Span

THRESHOLD = 0.15
"""Least score that is quoted.

On training questions it refuses 11 % of what can be answered (4 % of what would have been answered rightly), 48 % where
the passage that answers is missing, and 83 % where no passage is about the question.
"""

NEARLY = 0.5  # of the best score, for another sentence to be quoted beside it
MOST_QUOTED = 3
MOST_EMBEDDED = 12

# Fitted with passages that answer, passages of the same collection that do not, and passages of another one, over
# 100 questions each of SQuADShifts (new Wikipedia), Natural Questions and HotpotQA, the sets counting the same.
_BIAS, _RANK, _SHARE, _LEAD, _FITS, _COSINE, _BEHIND = -5.45, -0.72, 3.05, -2.94, 0.45, 6.24, -1.75


def by_words(features: Features) -> float:
    """How promising a sentence is before it is embedded: a part of the logit.

    How far it lies behind the best is left out: that misses more of the sentences that answer.
    """
    return _RANK * log1p(features.rank) + _SHARE * features.share + _FITS * features.fits


def scored(features: Sequence[Features], cosines: Sequence[float]) -> list[float]:
    """Probability in (0, 1) of each sentence to hold the answer; `cosines` are those of sentence and question."""
    best = max(cosines, default=0.0)
    return [
        _logistic(
            _BIAS + by_words(of_sentence) + _LEAD * of_sentence.lead + _COSINE * cosine + _BEHIND * (best - cosine)
        )
        for of_sentence, cosine in zip(features, cosines, strict=True)
    ]


def _logistic(logit: float) -> float:
    return 1 / (1 + exp(-logit))


def _read(sentence: Sentence) -> str:
    """What the embedder reads of a sentence: the innermost heading, which may name whom it is about, before it."""
    path = sentence.source.hit.chunk.heading_path
    return f"{path[-1]}: {sentence.text}" if path else sentence.text


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
    """The sentences that are looked at closely, in reading order, and the tokens the embedder reads for that."""

    question: str
    sentences: tuple[Sentence, ...]
    features: tuple[Features, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The quotes that answer, in reading order, none where the sources do not hold the answer.

    `score` is the best sentence's, quoted or not, 0 where there was none; `threshold` the least that is quoted.
    `tokens` were read by the embedder.
    """

    quotes: tuple[Quote, ...]
    score: float
    threshold: float
    tokens: int


class ExtractiveReader:
    """Reads sources for the sentences that answer. Safe to call from several threads."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def answer(self, question: str, context: Context, located: Located | None, /) -> tuple[Quote, ...]:
        """The quotes that answer, in reading order; none when the sources do not hold the answer.

        `located` is what a reader points at, None where none read them.
        """
        quotes = self.pointed(context, located).quotes if located is not None else ()
        if quotes or (located is not None and located.silent):
            return quotes
        return self.read(self.candidates(question, context)).quotes

    def candidates(self, question: str, context: Context) -> Candidates:
        """What would be embedded; nothing is yet."""
        sentences = sentences_of(context.sources)
        features = features_of(question, sentences)
        best = sorted(range(len(sentences)), key=lambda place: (-by_words(features[place]), place))[:MOST_EMBEDDED]
        chosen = sorted(best)
        texts = [_read(sentences[place]) for place in chosen]
        counted = [min(self._embedder.count_tokens(text), self._embedder.info.max_tokens) for text in texts]
        tokens = self._embedder.count_query(question) + self._embedder.count_documents(texts, counted=counted)
        return Candidates(
            question=question,
            sentences=tuple(sentences[place] for place in chosen),
            features=tuple(features[place] for place in chosen),
            tokens=tokens if chosen else 0,
        )

    def pointed(self, context: Context, located: Located) -> Reading:
        """The sentences that hold what a reader points at, worth as much as it finds likely; nothing is embedded."""
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
        quotes = _chosen(sentences, scores) if located.likely and any(scores) else ()
        return Reading(quotes, score=located.probability, threshold=located.threshold, tokens=0)

    def read(self, candidates: Candidates, *, threshold: float = THRESHOLD) -> Reading:
        """Embed the candidates and choose; `threshold` is the least score with which anything is quoted."""
        if not candidates.sentences:
            return Reading((), score=0.0, threshold=threshold, tokens=0)
        vectors = self._embedder.embed_documents([_read(sentence) for sentence in candidates.sentences])
        cosines = [float(cosine) for cosine in vectors @ self._embedder.embed_query(candidates.question)]
        scores = scored(candidates.features, cosines)
        best = max(scores)
        quotes = _chosen(candidates.sentences, scores) if best >= threshold else ()
        return Reading(quotes, score=best, threshold=threshold, tokens=candidates.tokens)


def _chosen(sentences: Sequence[Sentence], scores: Sequence[float]) -> tuple[Quote, ...]:
    """The best sentence and the others that are nearly as good and say something else, in reading order."""
    best = max(scores)
    kept: list[int] = []
    said: set[str] = set()
    for place in sorted(range(len(sentences)), key=lambda place: (-scores[place], place)):
        if len(kept) == MOST_QUOTED or scores[place] < NEARLY * best or not scores[place]:
            break
        words = " ".join(sentences[place].text.casefold().split())
        if words not in said:
            said.add(words)
            kept.append(place)
    return tuple(
        Quote(sentences[place].source, sentences[place].span, sentences[place].text, scores[place])
        for place in sorted(kept)
    )
