"""Puts together what understands questions and retrieves for them over a database, the installation's or one in memory.

Documents that are sent with a question are a database in memory of their own, over which the same objects are made for
that one question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.answering.answerer import Answerer
from app.answering.closing import CitationRecord, Closing
from app.answering.conversations.conversations import Conversations
from app.answering.fitting import Fitting
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.overviews import Overviews
from app.answering.retrieving.question_vectors import PassageVectors, QuestionVectors
from app.answering.retrieving.retriever import Retriever
from app.answering.understanding.catalogue_replies import CatalogueReplies
from app.answering.understanding.documents.meant import DocumentsMeant
from app.answering.understanding.followup.model import Rewriter
from app.answering.understanding.understanding import Understanding
from app.db.answer_citations import AnswerOutcome
from app.db.catalogue import CatalogueRepository
from app.db.chunks import ChunkRepository
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.document_names import DocumentNames
from app.db.session import Database
from app.documents.inline_library import InlineLibrary, SentDocument
from app.settings import IngestionSettings
from app.telemetry.timing import timed
from retrieval.ports import DenseIndex, Embedder, LexicalIndex, Reranker

if TYPE_CHECKING:
    from app.documents.inline_reader import InlineLimits, InlineReader


@dataclass(frozen=True, slots=True)
class Searched:
    """What understands, retrieves and fits over one database."""

    understanding: Understanding
    retriever: Retriever
    fitting: Fitting


class Searching:
    """Makes the steps of an answer that read documents. One instance serves every request.

    Example:
        >>> searching.over(database, chunks=chunks, dense=index, lexical=words).retriever
    """

    def __init__(
        self,
        *,
        embedder: Embedder,
        reranker: Reranker | None,
        rerank_candidates: int,
        min_evidence: float,
        conversations: Conversations,
        rewriter: Rewriter | None,
    ) -> None:
        """The vectors of questions are cached for all databases together."""
        self._embedder = embedder
        self._vectors = QuestionVectors(embedder)
        self._reranker = reranker
        self._rerank_candidates = rerank_candidates
        self._min_evidence = min_evidence
        self._conversations = conversations
        self._rewriter = rewriter

    def over(
        self,
        database: Database,
        *,
        chunks: ChunkRepository,
        dense: DenseIndex,
        lexical: LexicalIndex,
        passages: PassageVectors | None = None,
    ) -> Searched:
        """The steps over a database, its chunks and its two indexes; `passages` embeds those that are not yet."""
        from retrieval.search import Search

        catalogue, contents = CatalogueRepository(database), ContentRepository(database)
        meant = DocumentsMeant(catalogue)
        finder = Finder(
            search=Search(dense, lexical, chunks, timed=timed),
            vectors=self._vectors,
            reranker=self._reranker,
            rerank_candidates=self._rerank_candidates,
            min_evidence=self._min_evidence,
            names=DocumentNames(database),
            passages=passages,
        )
        return Searched(
            understanding=Understanding(
                conversations=self._conversations,
                replies=CatalogueReplies(catalogue, meant),
                rewriter=self._rewriter,
                instructions=CollectionRepository(database).instructions,
            ),
            retriever=Retriever(
                finder=finder,
                overviews=Overviews(meant, catalogue, contents, min_evidence=self._min_evidence),
                min_evidence=self._min_evidence,
            ),
            fitting=Fitting(contents),
        )

    def over_sent(self, library: InlineLibrary) -> Searched:
        """The steps over the documents that were sent with one question."""
        passages = PassageVectors(self._embedder, library)
        return self.over(
            library.database, chunks=library.chunks, dense=library, lexical=library.chunks, passages=passages
        )


class OutcomesAlone:
    """Implements `CitationRecord` for documents that are stored nowhere: how a question ended, and no citation."""

    def __init__(self, record: CitationRecord) -> None:
        self._record = record

    def record(
        self,
        request_id: str,
        *,
        tenant_id: str,
        citations: Mapping[str, int],  # noqa: ARG002 - they would point at nothing
        outcome: AnswerOutcome | None = None,
    ) -> None:
        """Store the outcome."""
        if outcome is not None:
            self._record.record(request_id, tenant_id=tenant_id, citations={}, outcome=outcome)

    def newer_versions(self, versions: Mapping[str, int], *, tenant_id: str) -> Mapping[str, int]:  # noqa: ARG002 - none is stored
        """None: what was sent has no versions."""
        return {}


class InlineAnswers:
    """Answers questions from the documents that were sent with them, and from nothing else.

    Example:
        >>> library = inline.read([SentDocument("The notice period is a month.")], tenant_id="acme")
        >>> answer = await inline.over(library).open(question).whole()
    """

    def __init__(self, reader: "InlineReader", *, searching: Searching, answerer: Answerer, closing: Closing) -> None:
        """They are answered as `answerer` does; `closing` records none of the documents."""
        self._reader = reader
        self._searching = searching
        self._answerer = answerer
        self._closing = closing

    def read(self, documents: Sequence[SentDocument], *, tenant_id: str) -> InlineLibrary:
        """The library of one question. Blocks; raises as `InlineReader.read`."""
        return self._reader.read(documents, tenant_id=tenant_id)

    def over(self, library: InlineLibrary) -> Answerer:
        """What answers from a library; the scope of its questions is the library's."""
        sent = self._searching.over_sent(library)
        return self._answerer.over(
            understanding=sent.understanding,
            retriever=sent.retriever,
            fitting=sent.fitting,
            meters=self._answerer.meters.unnamed(),
            closing=self._closing,
        )


def inline_limits(settings: IngestionSettings) -> "InlineLimits":
    """The most that is read from one request."""
    from app.documents.inline_reader import InlineLimits

    return InlineLimits(documents=settings.inline_documents, chars=settings.inline_chars, pages=settings.inline_pages)
