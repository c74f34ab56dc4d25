"""Retrieves what a question is answered from: hits that are evidence, or the parts of a document as a whole."""

from app.answering.answers.answer import AbstentionReport
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.retrieving.evidence import with_evidence
from app.answering.retrieving.finder import Finder, FoundHits
from app.answering.retrieving.overviews import Overviews
from app.answering.states.sources import Overview, Retrieved
from retrieval.types import Hit


class Retriever:
    """Retrieves hits. One instance serves every request.

    >>> retrieved = retriever.retrieve(question, meters.of(question))
    >>> [hit.chunk.id for hit in retrieved.hits]
    """

    def __init__(self, *, finder: Finder, overviews: Overviews, min_evidence: float) -> None:
        """`min_evidence` is the least evidence score of hits that are presented."""
        self._finder = finder
        self._overviews = overviews
        self._min_evidence = min_evidence

    def search(self, question: Question, meter: Meter) -> tuple[Hit, ...]:
        """The hits of a search alone, best first, evidence or not; raises as `Finder.find`."""
        return self._finder.find(question, meter).hits

    def retrieve(self, question: Question, meter: Meter) -> Retrieved:
        """The hits for a question that was understood.

        Raises:
            InvalidRequest: The question requires reranking and no reranker is configured; no model was called.
            BudgetExceeded: A model's call was not reserved, and not made.
            StoreUnavailable: Search or ledger cannot reach the database.
        """
        overview = self._overviews.known(question)
        if overview is not None:
            return _overviewed(self._finder.unsearched(question, meter, overview.hits), overview)
        found = self._finder.find(question, meter)
        overview = self._overviews.found(question, found.hits)
        if overview is not None:
            return _overviewed(found, overview)
        hits, evidence = with_evidence(question.text, found.hits, minimum=self._min_evidence)
        return Retrieved(hits=hits, found=found.hits, evidence=evidence, vector=found.vector, rerank_ms=found.rerank_ms)


def _overviewed(found: FoundHits, overview: Overview) -> Retrieved:
    return Retrieved(
        hits=overview.hits,
        found=overview.hits,
        evidence=AbstentionReport(),
        vector=found.vector,
        overview=overview,
        rerank_ms=found.rerank_ms,
    )
