"""Decides which document a question asks about as a whole, and what of it is shown: title, opening and headings."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answering.abstention import evidence_score
from app.answering.overview.asking import Wanted, wanted_overview
from app.answering.overview.names import closest, names, searched
from app.answering.overview.parts import parts_of
from app.answering.overview.which import named_in_reply
from app.answering.question import Question
from app.answering.quoting.quotes import ANSWERED, Quote, Selection
from app.db.catalogue import Catalogue, CatalogueRepository, Listed, Named
from app.db.contents import ContentRepository
from retrieval.types import Chunk, Context, Hit, Scores, Span
from retrieval.words import terms

KNOWN = 0.95
"""The probability that the question is answered where it names the document, or no other is in scope.

Its opening and its headings are then by definition what was asked for; the rest is that the question was meant
otherwise. Where several documents have the same claim it is divided by their number.
"""

FOLLOWED = 0.8
"""The same where the document is the one that the conversation's last answer cited: a new subject may be meant."""

MOST_FOUND = 0.85
"""The most where a search found the document: below what is shown as confirmed."""

_CANDIDATES = 20
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Overview:
    """What is shown of a document as a whole. Spans are characters of its live version.

    Attributes:
        hits: The chunks with the opening, and those with the headings, at most as many as the question asks for.
        opening: The opening; None where there is no text.
        headings: The headings in reading order.
        title: The line of the document that is its title; None without one.
        score: The probability in (0, 1) that this document is meant, and so that the question is answered.
    """

    hits: tuple[Hit, ...]
    opening: Span | None
    headings: tuple[Span, ...]
    title: Span | None
    score: float

    def selection(self, context: Context, *, answered: float = ANSWERED) -> Selection | None:
        """The opening and the headings as quotes from the sources of `context`; None where it holds none of them.

        Of a document that is only likely meant there is no more than the opening.

        Args:
            context: Built from `hits`.
            answered: The probability from which on the question counts as answered; else the quotes are only likely.
        """
        parts = ([self.opening] if self.opening is not None else []) + list(self.headings)
        parts = parts if self.score >= answered else parts[:1]
        quotes = tuple(quote for part in parts if (quote := self._quote(context, part)) is not None)
        if not quotes:
            return None
        title = self._quote(context, self.title) if self.title is not None else None
        return Selection(
            quotes,
            self.score,
            "answered" if self.score >= answered else "unsure",
            threshold=answered,
            probabilities=tuple((quote.source.number, quote.span, quote.score) for quote in quotes),
            title=title,
        )

    def _quote(self, context: Context, span: Span) -> Quote | None:
        """The quote of a span; of the opening, which two sources may share, as much as one of them shows."""
        shown = [
            (source, Span(span.start_char, min(span.end_char, one.end_char)))
            for source in context.sources
            for one in source.spans
            if one.start_char <= span.start_char < one.end_char
        ]
        source, kept = max(shown, key=lambda found: found[1].end_char, default=(None, span))
        if source is None or span not in {kept, self.opening}:
            return None
        chunk = source.hit.chunk
        text = chunk.text[kept.start_char - chunk.start_char : kept.end_char - chunk.start_char]
        return Quote(source, kept, text, self.score, kept if span == self.title else None)


class Overviews:
    """Overviews of documents, from the catalogue and the canonical texts, without a model. Safe in several threads.

    Example:
        >>> overviews.known(question("What is this document about?")).opening
        Span(start_char=45, end_char=612)
    """

    def __init__(
        self, catalogue: CatalogueRepository, contents: ContentRepository, *, min_evidence: float = 0.0
    ) -> None:
        """`min_evidence` is the least evidence score of a document that is known by search alone."""
        self._catalogue = catalogue
        self._contents = contents
        self._min_evidence = min_evidence

    def known(self, question: Question) -> Overview | None:
        """The overview that a question asks for, where no search is needed to know the document; else None.

        Raises:
            InvalidFilter: The scope's filter cannot be compiled.
            StoreUnavailable: The database cannot be read.
        """
        wanted = _wanted(question)
        chosen = None if wanted is None else self._by_name(wanted, question)
        return None if chosen is None else self._overview(question, *chosen)

    def unclear(self, question: Question, *, limit: int) -> Catalogue | None:
        """The documents that a question about one as a whole may mean, where several have the same claim; else None.

        These are all documents in scope where it names none and the conversation has cited none, or those whose names
        hold all of its words. `Catalogue.newest` has at most `limit` of them. Earlier turns of a chat completion may
        tell the document and have no footnotes to know it by, so nothing is unclear behind them.

        Raises:
            InvalidFilter, StoreUnavailable: As `known`.
        """
        wanted = _wanted(question)
        if wanted is None:
            return None
        close = [] if wanted.at_hand else self._called(wanted, question)
        if close:
            told_apart = len({(one.filename, one.title) for one in close}) > 1
            named = all(names(wanted, one) for one in close)
            if not (told_apart and named) or any(one.id in question.preferred for one in close):
                return None
            listed = tuple(Listed(one.filename, one.title) for one in close[:limit])
            return Catalogue(searchable=len(listed), waiting=0, newest=listed, collections=())
        described = bool(wanted.words) and not wanted.pointed
        if described or not wanted.explicit or self._at_hand(question) is not None:
            return None
        if question.history and question.conversation_id is None:
            return None
        catalogue = self._catalogue.of(question.scope, limit=limit)
        return catalogue if catalogue.searchable > 1 else None

    def found(self, question: Question, hits: Sequence[Hit]) -> Overview | None:
        """The overview of the document that the hits of a search point at; None for every other question.

        Args:
            question: One of which `known` does not know the document.
            hits: Best first, evidence or not.

        Raises:
            InvalidFilter, StoreUnavailable: As `known`.
        """
        wanted = _wanted(question)
        if wanted is None or not wanted.explicit:
            return None
        chosen = self._by_hits(wanted, question, hits)
        return None if chosen is None else self._overview(question, *chosen)

    def _by_name(self, wanted: Wanted, question: Question) -> tuple[Named, float] | None:
        """The document at hand, the one that the words name, or the one of the last answer, and its probability."""
        if wanted.at_hand:
            return self._at_hand(question)
        close = self._called(wanted, question)
        cited = [one for one in close if one.id in question.preferred]
        if len(close) > 1 and cited:
            return cited[0], FOLLOWED / len(cited)
        if close:
            return close[0], KNOWN / len(close)
        return self._at_hand(question) if wanted.explicit and not wanted.words else None

    def _called(self, wanted: Wanted, question: Question) -> list[Named]:
        """The documents in scope whose names fit best, all as well as the first."""
        return closest(wanted, self._catalogue.named(question.scope, words=searched(wanted), limit=_CANDIDATES))

    def _at_hand(self, question: Question) -> tuple[Named, float] | None:
        """The only document in scope, or the first that the last answer cited."""
        several = self._catalogue.named(question.scope, limit=2)
        if len(several) == 1:
            return several[0], KNOWN
        if not question.preferred:
            return None
        cited = self._catalogue.named(question.scope, ids=question.preferred, limit=_CANDIDATES)
        first = min(cited, key=lambda one: question.preferred.index(one.id), default=None)
        return None if first is None else (first, FOLLOWED / len(cited))

    def _by_hits(self, wanted: Wanted, question: Question, hits: Sequence[Hit]) -> tuple[Named, float] | None:
        """The document with most of the best hits, and its share of them.

        Where the question has words of its own, only hits with half of them count, and they must be evidence. Where it
        has none, a search says nothing of which document is meant: each of them is as likely.
        """
        words = frozenset[str]() if wanted.pointed else wanted.words
        counted = [hit for hit in hits if len(words & terms(hit.chunk.text)) >= _HALF * len(words)]
        if words and evidence_score(" ".join(sorted(words)), counted) < self._min_evidence:
            return None
        weights: dict[str, float] = {}
        for rank, hit in enumerate(counted):
            weights[hit.chunk.document_id] = weights.get(hit.chunk.document_id, 0.0) + 1 / (1 + rank)
        if not weights:
            return None
        best = max(weights, key=lambda document: weights[document])
        found = self._catalogue.named(question.scope, ids=[best], limit=1)
        if not found:
            return None
        if words:
            return found[0], min(MOST_FOUND, weights[best] / sum(weights.values()))
        return found[0], KNOWN / max(1, self._catalogue.of(question.scope, limit=1).searchable)

    def _overview(self, question: Question, document: Named, score: float) -> Overview | None:
        """The overview of a document; None where it vanished meanwhile or has no text."""
        parts = parts_of(
            self._contents,
            document.id,
            tenant_id=question.principal.tenant_id,
            version=document.version,
            title=document.title or "",
        )
        if parts is None:
            return None
        spans = [span for span in (parts.title, parts.opening) if span is not None]
        kept: dict[str, Chunk] = {}
        first = spans if question.top_k > 1 else spans[::-1]  # the opening says more than the title
        for span in (*first, *parts.headings):
            for chunk in _holding(parts.chunks, span):
                kept.setdefault(chunk.id, chunk)
        if not kept:
            return None
        hits = tuple(
            Hit(chunk, Scores(fused=1 / (1 + rank))) for rank, chunk in enumerate(list(kept.values())[: question.top_k])
        )
        return Overview(hits, parts.opening, parts.headings, parts.title, score)


def _wanted(question: Question) -> Wanted | None:
    """The document that the question asks about: as it was asked, rewritten to stand alone, or as a reply names it."""
    return (
        wanted_overview(question.as_asked)
        or wanted_overview(question.text)
        or named_in_reply(question.as_asked, question.history)
    )


def _holding(chunks: Sequence[Chunk], span: Span) -> list[Chunk]:
    """The first chunk that holds all of a span, else those that hold a part of it."""
    over = [chunk for chunk in chunks if chunk.start_char < span.end_char and span.start_char < chunk.end_char]
    whole = [chunk for chunk in over if chunk.start_char <= span.start_char and span.end_char <= chunk.end_char]
    return whole[:1] or over
