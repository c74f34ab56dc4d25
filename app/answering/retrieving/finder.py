"""Finds passages: search, documents preferred or named, reranking; each model call is on the ledger.

Documents that the question names are searched by themselves, too, and ranked among the others (docs/adr/0092).

A follow-up prefers the documents that the last answer cited (`Question.preferred`). They are searched by themselves,
with the vector of the search in the whole scope, so no model is called twice. Where they hold evidence, passages of
other documents stay only if they are clearly better evidence: by `MARGIN`, which near misses of the same form ("the
pilot was injured" in another report) seldom reach. They fill at most half of the places, so a wrong preference costs
little and a right one is never crowded out (docs/EXPERIMENTS.md has the figures). A bonus added to the fused score was
not chosen: that score is relative to the other hits of a search, so no bonus fits all searches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from app.answering.metering.meter import Meter
from app.answering.metering.token_usage import ModelCall, Purpose
from app.answering.question import Question
from app.answering.retrieving.evidence import evidence_score
from app.answering.retrieving.question_vectors import PassageVectors, QuestionVector, QuestionVectors
from app.errors import InvalidRequest
from app.telemetry.timing import timed
from retrieval.name_index import NamedDocument, without_names
from retrieval.named_hits import ranked_by_name
from retrieval.ports import Reranker
from retrieval.search import Search, passage, reranked
from retrieval.types import Hit, Scope, SearchMode

MARGIN = 0.2
"""How much more evidence, in [0, 1], a passage of another document must be than the best of a preferred one."""


class NamedDocuments(Protocol):
    """Finds the documents that a question names. Safe to call from several threads."""

    def named(self, question: str, *, scope: Scope) -> list[NamedDocument]:
        """The documents in scope that a question names, the surest first.

        Raises:
            InvalidFilter: The scope's filter cannot be compiled.
            StoreUnavailable: The database cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class FoundHits:
    """Hits best first, the question's vector for further use, and the milliseconds of reranking."""

    hits: tuple[Hit, ...]
    vector: QuestionVector
    rerank_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchedPassages:
    """The hits of a search without an answer, best first, and its model calls."""

    hits: tuple[Hit, ...]
    calls: tuple[ModelCall, ...]


class Finder:
    """Finds passages. One instance serves every request.

    >>> found = finder.find(question, meters.of(question))
    >>> [hit.chunk.id for hit in found.hits]
    """

    def __init__(
        self,
        *,
        search: Search,
        vectors: QuestionVectors,
        reranker: Reranker | None = None,
        rerank_candidates: int = 20,
        min_evidence: float = 0.0,
        names: NamedDocuments | None = None,
        passages: PassageVectors | None = None,
    ) -> None:
        """The best `rerank_candidates` hits are reranked; without a reranker the order of the search is kept.

        Preferred documents count only where one of their passages has at least `min_evidence`. Without `names` no
        document is known by its name. `passages` embeds those that a search compares, where they are not embedded yet.
        """
        assert rerank_candidates >= 1, "the settings see to it"
        self._search = search
        self._vectors = vectors
        self._reranker = reranker
        self._candidates = rerank_candidates
        self._min_evidence = min_evidence
        self._names = names
        self._passages = passages

    def find(self, question: Question, meter: Meter) -> FoundHits:
        """At most `question.top_k` hits, reranked unless the question forbids it or there is no reranker.

        None scores less than `question.min_score`.

        Raises:
            InvalidRequest: The question requires reranking and no reranker is configured; no model was called.
            StoreUnavailable: Search or ledger cannot reach the database.
            CallsClosed: Nobody waits for the answer any more; only where there are passages to embed.
        """
        if question.rerank and self._reranker is None:
            raise InvalidRequest(
                "rerank: this server has no reranker; leave the field out, or set FOOTNOTE_RERANKER.", param="rerank"
            )
        vector = self._vectors.of(question, meter)
        if self._passages is not None and question.mode is not SearchMode.LEXICAL:
            self._passages.ready(meter)
        if self._reranker is None or question.rerank is False:
            hits = self._searched(question, vector, top_k=question.top_k)
            return FoundHits(_scoring(hits, question.min_score), vector)
        hits = self._searched(question, vector, top_k=max(question.top_k, self._candidates))
        with timed("rerank") as reranking:
            hits = self._reranked(self._reranker, question, hits, meter)
        best = _scoring(hits[: question.top_k], question.min_score)
        return FoundHits(best, vector, rerank_ms=reranking.seconds * 1000)

    def unsearched(self, question: Question, meter: Meter, hits: tuple[Hit, ...]) -> FoundHits:
        """Hits that are known without a search."""
        return FoundHits(hits, self._vectors.of(question, meter))

    def _searched(self, question: Question, vector: QuestionVector, *, top_k: int) -> tuple[Hit, ...]:
        """The hits of the question's scope, with those of preferred and of named documents put first."""
        search = partial(self._search.search, question.text, top_k=top_k, mode=question.mode, vector=vector)
        hits = self._preferring(question, lambda scope: search(scope=scope), top_k=top_k)
        if self._names is None or not hits or question.mode is not SearchMode.HYBRID:
            return hits
        with timed("names"):
            named = self._names.named(question.text, scope=question.scope)
        if not named:
            return hits
        inside = search(
            scope=replace(question.scope, document_ids=tuple(sorted(one.id for one in named))),
            words=without_names(question.text, named[0].words),
        )
        return ranked_by_name(hits, inside, named, top_k=top_k)

    def _preferring(
        self, question: Question, search: Callable[[Scope], tuple[Hit, ...]], *, top_k: int
    ) -> tuple[Hit, ...]:
        """The hits of the question's scope, with those of preferred documents put first."""
        hits = search(question.scope)
        if not question.preferred or not hits:
            return hits
        preferred = set(question.preferred)
        if question.scope.document_ids is not None:
            preferred &= set(question.scope.document_ids)
        inside = search(replace(question.scope, document_ids=tuple(sorted(preferred))))
        return preferring(question.text, hits, inside, minimum=self._min_evidence, top_k=top_k)

    def _reranked(self, reranker: Reranker, question: Question, hits: tuple[Hit, ...], meter: Meter) -> tuple[Hit, ...]:
        """The hits in their new order."""
        passages = [passage(hit.chunk) for hit in hits[: self._candidates]]
        if len(passages) < 2:
            return hits  # there is nothing to put in order
        tokens = reranker.count_tokens(question.text, passages)
        with meter.reading(Purpose.RERANK, model=reranker.model, revision=reranker.revision, tokens=tokens):
            scores = reranker.score(question.text, passages)
        return reranked(hits, scores)


def _scoring(hits: tuple[Hit, ...], minimum: float | None) -> tuple[Hit, ...]:
    """The hits that score at least `minimum`; all of them where it is None."""
    return hits if minimum is None else tuple(hit for hit in hits if hit.scores.ranking >= minimum)


def preferring(
    question: str, hits: Sequence[Hit], inside: Sequence[Hit], *, minimum: float, top_k: int
) -> tuple[Hit, ...]:
    """Hits that are clearly better evidence than the best hit `inside` preferred documents, then those inside.

    At most `top_k` hits, half of them of other documents; `hits` unchanged where no hit inside has evidence of at least
    `minimum`.

    Args:
        question: Rewritten to stand alone.
        hits: Of the whole scope, best first; some may be of preferred documents.
        inside: Of the preferred documents, best first.
        minimum: The least evidence score, in [0, 1].
        top_k: At least 1; `hits` has no more.
    """
    best = evidence_score(question, inside)
    if not inside or best < minimum:
        return tuple(hits)
    documents = {hit.chunk.document_id for hit in inside}
    others = [hit for hit in hits if hit.chunk.document_id not in documents]
    better = [hit for hit in others if evidence_score(question, [hit]) >= best + MARGIN]
    return (*better[: top_k // 2], *inside)[:top_k]
