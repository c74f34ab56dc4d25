"""Finds what is shown of a document that a question asks about as a whole: its title, opening and headings."""

from collections.abc import Sequence

from app.answering.question import Question
from app.answering.retrieving.evidence import evidence_score
from app.answering.retrieving.parts import parts_of
from app.answering.states.sources import Overview
from app.answering.understanding.documents.asking import Wanted
from app.answering.understanding.documents.meant import KNOWN, DocumentsMeant, wanted_by
from app.db.catalogue import CatalogueRepository, Named
from app.db.contents import ContentRepository
from retrieval.types import Chunk, Hit, Scores, Span
from retrieval.words import terms

MOST_FOUND = 0.85
"""The most where a search found the document, or its opening is no prose: below what is shown as confirmed."""

_HALF = 0.5


class Overviews:
    """Overviews of documents, from the catalogue and the canonical texts, without a model. Safe in several threads.

    Example:
        >>> overviews.known(question("What is this document about?")).opening
        Span(start_char=45, end_char=612)
    """

    def __init__(
        self,
        meant: DocumentsMeant,
        catalogue: CatalogueRepository,
        contents: ContentRepository,
        *,
        min_evidence: float = 0.0,
    ) -> None:
        """`min_evidence` is the least evidence score of a document that is known by search alone."""
        self._meant = meant
        self._catalogue = catalogue
        self._contents = contents
        self._min_evidence = min_evidence

    def known(self, question: Question) -> Overview | None:
        """The overview that a question asks for, where no search is needed to know the document; else None.

        Raises:
            InvalidFilter: The scope's filter cannot be compiled.
            StoreUnavailable: The database cannot be read.
        """
        chosen = self._meant.known(question)
        return None if chosen is None else self._overview(question, *chosen)

    def found(self, question: Question, hits: Sequence[Hit]) -> Overview | None:
        """The overview of the document that the hits of a search point at; None for every other question.

        Args:
            question: One of which `known` does not know the document.
            hits: Best first, evidence or not.

        Raises:
            InvalidFilter, StoreUnavailable: As `known`.
        """
        wanted = wanted_by(question)
        if wanted is None or not wanted.explicit:
            return None
        chosen = self._by_hits(wanted, question, hits)
        return None if chosen is None else self._overview(question, *chosen)

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
            name=(wanted := wanted_by(question)) is not None and wanted.name,
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
        # Whether a table's first rows or a form's instruction say what a document is about, nobody has confirmed.
        likely = score if parts.certain else min(score, MOST_FOUND)
        return Overview(hits, parts.opening, parts.headings, parts.title, likely)


def _holding(chunks: Sequence[Chunk], span: Span) -> list[Chunk]:
    """The first chunk that holds all of a span, else those that hold a part of it."""
    over = [chunk for chunk in chunks if chunk.start_char < span.end_char and span.start_char < chunk.end_char]
    whole = [chunk for chunk in over if chunk.start_char <= span.start_char and span.end_char <= chunk.end_char]
    return whole[:1] or over
