"""Real models assembled around a small embedder and a given engine, for a state without models."""

from dataclasses import replace
from typing import Any

from app.answering.closing import Closing
from app.answering.conversations.conversations import Conversations
from app.answering.generating.model_class import ModelClass
from app.answering.question import AnswerDefaults
from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.db.answer_citations import AnswerCitationRepository
from app.db.chunks import ChunkRepository
from app.documents.adapters.faiss_vectors import FaissVectors
from app.documents.adapters.word_index import WordIndex
from app.documents.index_ports import VectorStore
from app.documents.indexes import Indexes
from app.documents.inline_reader import InlineReader
from app.documents.passwords import JobPasswords, Passwords
from app.jobs.attempt import Billing, Ingestion
from app.jobs.worker import Worker
from app.server.searching import InlineAnswers, OutcomesAlone, Searching, inline_limits
from app.server.serving import Models
from app.server.state import State
from app.telemetry.timing import timed
from generation.ports import Engine, Tokenizer
from ingestion.chunking import Chunker
from ingestion.extraction import LocalExtractor
from ingestion.pipeline import Pipeline
from ingestion.ports import Extractor
from retrieval.ports import Embedder, Reranker, SpanReader
from retrieval.search import Search
from tests.app.answering.absent import NoConversations, NoRecord
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.db.samples import generation_of
from tests.generation.fakes import LetterTokenizer
from tests.ingestion.small_tokenizer import word_piece
from tests.retrieval.fakes import HashingEmbedder

LIMITS = AnswerDefaults(max_context_tokens=2000, max_output_tokens=64, min_evidence=0.3, max_waiting=8)
ANY_EVIDENCE = AnswerDefaults(max_context_tokens=2000, max_output_tokens=200, min_evidence=-1.0, max_waiting=4)

_PARTS = ("corpus", "history", "access", "usage", "limits", "telemetry", "serving")


def stations(
    state: State,
    engine: Engine,
    *,
    tokenizer: Tokenizer | None = None,
    embedder: Embedder | None = None,
    index: VectorStore | None = None,
    search: Search | None = None,
    reranker: Reranker | None = None,
    reader: SpanReader | None = None,
    selects: bool = False,
    quotes: QuotesAs = QuotesAs.NOTHING,
    quote_unverified: bool = False,
    sure_quotes_answer: bool = False,
    model_class: ModelClass = ModelClass.QUOTES,
    limits: AnswerDefaults = LIMITS,
    passwords: JobPasswords | None = None,
    extractor: Extractor | None = None,
    remembers: bool = False,
) -> Models:
    """The models the composition root would build around `engine`; nothing is started.

    Args:
        state: Without models; index files go into its data dir.
        engine: Generates; whoever made it closes it.
        tokenizer: The engine's; letters by default.
        embedder: Hashes words by default.
        index: Searched for vectors; FAISS in the state's data dir by default.
        search: What finds; the real one over the state's database by default.
        reranker: None by default.
        reader: None by default.
        selects: Whether quotes are selected from the sources without a reader too.
        quotes: Which questions quotes answer.
        quote_unverified: Whether quotes follow a generated answer of which nothing is verified.
        sure_quotes_answer: Whether nothing is generated where quotes surely answer in a few words.
        model_class: How well the engine's model reads.
        limits: Of every answer.
        passwords: Where the worker finds what protected files are opened with; none come to it by default.
        extractor: Reads files; in the calling process by default.
        remembers: Whether answers are stored in their conversations, and the documents that they cite.
    """
    tokenizer, embedder = tokenizer or LetterTokenizer(), embedder or HashingEmbedder(max_tokens=64)
    chunks, ledger = ChunkRepository(state.database), state.usage.ledger
    if index is None:  # an empty one is false
        index = FaissVectors(
            state.settings.data_dir / "index",
            embedder=embedder.info,
            generation=generation_of(state.database, embedder.info),
            chunks=chunks,
        )
    lexical = WordIndex(state.settings.data_dir / "lexical", database=state.database, chunks=chunks)
    ingestion = Ingestion(
        jobs=state.corpus.jobs,
        files=state.corpus.files,
        pipeline=Pipeline(
            extractor or LocalExtractor(), Chunker(word_piece(), max_tokens=64, overlap=8), embedder, timed=timed
        ),
        billing=Billing(ledger, embedder),
        instruments=state.telemetry.instruments,
        passwords=Passwords() if passwords is None else passwords,  # an empty one is false
    )
    worker = Worker(ingestion, indexes=Indexes(index, lexical), boot_id=ledger.boot_id)
    inline_reader = InlineReader(
        Pipeline(extractor or LocalExtractor(), Chunker(word_piece(), max_tokens=64, overlap=8), embedder, timed=timed),
        limits=inline_limits(state.settings),
        dim=embedder.info.dim,
    )
    found = search or Search(index, lexical, chunks, timed=timed)
    selects = selects or reader is not None or quotes is not QuotesAs.NOTHING or quote_unverified
    kept = (
        Conversations(state.history.conversations, count_tokens=tokenizer.count, history_tokens=500)
        if remembers
        else NoConversations()
    )
    citations = AnswerCitationRepository(state.database, clock=ledger.seconds) if remembers else None
    searching = Searching(
        embedder=embedder,
        reranker=reranker,
        rerank_candidates=20,
        min_evidence=limits.min_evidence,
        conversations=kept,
        rewriter=None,
    )
    answerer = make_answerer(
        finder=Finder(search=found, vectors=QuestionVectors(embedder), reranker=reranker),
        engine=engine,
        tokenizer=tokenizer,
        contents=state.corpus.contents,
        ledger=ledger,
        limits=limits,
        passage_reader=PassageReader(embedder=embedder, reader=reader) if selects else None,
        quotes=quotes,
        quote_unverified=quote_unverified,
        sure_quotes_answer=sure_quotes_answer,
        model_class=model_class,
        conversations=kept,
        citations=citations,
    )
    return Models(
        embedder=embedder,
        engine=engine,
        tokenizer=tokenizer,
        index=index,
        lexical=lexical,
        answerer=answerer,
        worker=worker,
        inline=InlineAnswers(
            inline_reader,
            searching=searching,
            answerer=answerer,
            closing=Closing(
                ledger=ledger, conversations=kept, citations=OutcomesAlone(citations) if citations else NoRecord()
            ),
        ),
    )


def state_with(state: State, **changes: Any) -> State:
    """A copy of `state` in which fields of it or of its parts are others, such as `models` or `intake`."""
    for name, value in changes.items():
        part = next((part for part in _PARTS if hasattr(getattr(state, part), name)), None)
        state = replace(
            state, **({name: value} if part is None else {part: replace(getattr(state, part), **{name: value})})
        )
    return state
