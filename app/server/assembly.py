"""Assembles the models around one embedder: its index, search, ingestion worker and answerer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from app.answering.answerer import Answerer
from app.answering.closing import Closing
from app.answering.conversations.conversations import Conversations
from app.answering.generating.cached_tokenizer import CachedTokenizer
from app.answering.generating.generator import Generator
from app.answering.generating.model_class import ASKING, Asking, ModelClass
from app.answering.generating.prompts import Prompts
from app.answering.generating.strategy import Generating
from app.answering.generating.summaries import Summariser
from app.answering.generating.wording import read_wording
from app.answering.languages.table import languages
from app.answering.metering.meter import Meters
from app.answering.question import AnswerDefaults
from app.answering.quoting.passage_reader import PassageReader
from app.answering.quoting.strategy import Quoting
from app.answering.states.strategy import Strategy
from app.answering.understanding.followup.model import Rewriter
from app.answering.verification.metered_models import Verification
from app.db.answer_citations import AnswerCitationRepository
from app.db.asked_questions import AskedQuestionRepository
from app.db.chunks import ChunkRepository
from app.db.conversations import ConversationRepository
from app.db.index_generations import IndexGeneration
from app.db.jobs import JobRepository
from app.db.session import Database
from app.documents.adapters.faiss_vectors import FaissStores
from app.documents.files import DocumentFiles
from app.documents.index_ports import VectorStore, VectorStores, WordStore
from app.documents.indexes import Indexes
from app.documents.inline_reader import InlineReader
from app.documents.passwords import JobPasswords
from app.errors import SetupError
from app.jobs.attempt import Billing, Ingestion
from app.jobs.worker import Worker
from app.models.loading import load_embedder, load_generator, load_reader
from app.server.embedder_swap import EmbedderStack
from app.server.searching import InlineAnswers, OutcomesAlone, Searching, inline_limits
from app.server.serving import Models
from app.settings import Settings
from app.telemetry.logs import logger
from app.telemetry.timing import Instruments, timed
from app.usage.ledger.ledger import Ledger
from generation.ports import Engine, Tokenizer
from ingestion.ports import Extractor
from retrieval.errors import RetrievalError
from retrieval.memo import Memo
from retrieval.ports import CandidateJudge, ChunkingEmbedder, EntailmentJudge, Reranker, SpanReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """Builds an `EmbedderStack` for any generation: everything that reads or writes the vectors of one embedder.

    The fields are shared by all embedders. `parsers` is the number of files read at once, `inline_extractor` reads
    those sent with a question, `configured` is the embedder of the settings. `generator` is the tokenizer, its revision
    and the engine that were loaded with it; `served_class` says how well its model reads, as far as that is known when
    a question is asked.

    Example:
        >>> stack = assembly.stack_for(generation)
        >>> models = stack.assemble(stack.open_index(generation.id))
    """

    settings: Settings
    database: Database
    files: DocumentFiles
    ledger: Ledger
    jobs: JobRepository
    instruments: Instruments
    asked: AskedQuestionRepository
    chunks: ChunkRepository
    lexical: WordStore
    extractor: Extractor
    inline_extractor: Extractor
    parsers: int
    passwords: JobPasswords
    configured: ChunkingEmbedder
    generator: tuple[Tokenizer, str, Engine]
    reranker: Reranker | None
    judge: CandidateJudge | None
    entailment: EntailmentJudge | None
    served_class: Callable[[], ModelClass]

    @property
    def vector_stores(self) -> VectorStores:
        """Where the vectors of each generation are searched."""
        return vector_stores_of(self.settings, self.database, self.chunks)

    def stack_for(self, generation: IndexGeneration) -> EmbedderStack:
        """The stack of the embedder that made a generation's vectors.

        Raises:
            SetupError: The embedder is not on this machine any more, or another model has its name now.
            ReaderUnavailable: Its span reader cannot be loaded.
        """
        if generation.is_of(self.configured.info):
            return self._stack(self.configured, load_reader(self.settings))
        settings = recorded_settings(self.settings, generation)
        built_with = f"The index was built with the embedder {generation.model} (revision {generation.revision})"
        remedy = "Put it back until the new vectors are in use."
        try:
            embedder = load_embedder(settings)
        except (SetupError, RetrievalError) as error:
            raise SetupError(f"{built_with}, which is needed to search it: {error} {remedy}") from error
        if not generation.is_of(embedder.info):
            raise SetupError(f"{built_with}, and another model has this name now. {remedy}")
        return self._stack(embedder, _reader_beside(settings))

    def _stack(self, embedder: ChunkingEmbedder, reader: SpanReader | None) -> EmbedderStack:
        from ingestion.chunking import Chunker

        chunker = Chunker(
            embedder.tokenizer,
            max_tokens=min(self.settings.chunk_tokens, embedder.info.max_tokens),
            overlap=self.settings.chunk_overlap,
        )

        def open_index(generation: int) -> VectorStore:
            return self.vector_stores.open(generation, embedder.info)

        def assemble(index: VectorStore) -> Models:
            from ingestion.pipeline import Pipeline

            # without a language model, tokens are counted by the embedder's tokenizer
            generator = load_generator(self.settings, embedder) if self.settings.extractive else self.generator
            ingestion = Ingestion(
                jobs=self.jobs,
                files=self.files,
                pipeline=Pipeline(self.extractor, chunker, embedder, timed=timed),
                billing=Billing(self.ledger, embedder),
                instruments=self.instruments,
                passwords=self.passwords,
            )
            indexes = Indexes(index, self.lexical)
            worker = Worker(ingestion, indexes=indexes, boot_id=self.ledger.boot_id, parsers=self.parsers)
            inline_reader = InlineReader(
                Pipeline(self.inline_extractor, chunker, embedder, timed=timed),
                limits=inline_limits(self.settings),
                dim=embedder.info.dim,
            )
            answerer, inline = self._answerer(embedder, index, reader, generator, inline_reader)
            return Models(
                embedder=embedder,
                engine=generator[2],
                tokenizer=generator[0],
                index=index,
                lexical=self.lexical,
                answerer=answerer,
                worker=worker,
                inline=inline,
            )

        return EmbedderStack(embedder, chunker.embedding_text, open_index, assemble)

    def _answerer(
        self,
        embedder: ChunkingEmbedder,
        index: VectorStore,
        reader: SpanReader | None,
        generator: tuple[Tokenizer, str, Engine],
        inline_reader: InlineReader,
    ) -> tuple[Answerer, InlineAnswers]:
        """What answers from the stored documents, and from those that are sent with a question."""
        settings, ledger, (serving, revision, engine) = self.settings, self.ledger, generator
        tokenizer, limits = CachedTokenizer(serving), _limits(settings)
        conversations = Conversations(
            ConversationRepository(self.database, clock=ledger.seconds),
            count_tokens=tokenizer.count,
            history_tokens=settings.history_tokens,
            asked=self.asked,
        )
        citations = AnswerCitationRepository(self.database, clock=ledger.seconds)
        languages()  # read now, not while a question waits
        by_model = settings.followup == "model" and not settings.extractive
        searching = Searching(
            embedder=embedder,
            reranker=self.reranker,
            rerank_candidates=settings.rerank_candidates,
            min_evidence=limits.min_evidence,
            conversations=conversations,
            rewriter=Rewriter(tokenizer=tokenizer) if by_model else None,
        )
        stored = searching.over(self.database, chunks=self.chunks, dense=index, lexical=self.lexical)
        passage_reader, memo = PassageReader(embedder=embedder, reader=reader, judge=self.judge), Memo()
        quoting = Quoting(
            passage_reader=passage_reader, tokenizer=tokenizer, limits=limits, window=engine.info.context_window
        )
        verification = Verification(embedder=embedder, entailment=self.entailment)
        summariser = Summariser(engine=engine, tokenizer=tokenizer) if settings.overflow == "summarise" else None

        def generating(model_class: ModelClass) -> Generating:
            asking = _asking(settings, model_class)
            return Generating(
                generator=Generator(engine=engine, tokenizer=tokenizer, limits=limits, wording=asking.wording),
                prompts=Prompts(engine=engine, tokenizer=tokenizer, limits=limits, asking=asking, overflow=summariser),
                passage_reader=passage_reader,
                verification=verification,
                memo=memo,
                quote_unverified=settings.quotes_unconfirmed,
                sure_quotes_answer=settings.sure_quotes_answer(model_class),
            )

        ways = {one: strategies(settings, one, quoting, generating) for one in ModelClass}
        meters = Meters(ledger=ledger, engine=engine, tokenizer_revision=revision)
        answerer = Answerer(
            understanding=stored.understanding,
            retriever=stored.retriever,
            fitting=stored.fitting,
            strategies=lambda: ways[self.served_class()],
            quoting=quoting,
            meters=meters,
            closing=Closing(ledger=ledger, conversations=conversations, citations=citations),
            memo=memo,
        )
        inline = InlineAnswers(
            inline_reader,
            searching=searching,
            answerer=answerer,
            closing=Closing(ledger=ledger, conversations=conversations, citations=OutcomesAlone(citations)),
        )
        return answerer, inline


def _limits(settings: Settings) -> AnswerDefaults:
    return AnswerDefaults(
        max_context_tokens=settings.max_context_tokens,
        max_output_tokens=settings.max_output_tokens,
        min_evidence=settings.min_evidence,
        highlight_tokens=settings.highlight_tokens,
        max_waiting=settings.max_waiting,
        abstention_threshold=None if settings.abstention_threshold == "model" else settings.abstention_threshold,
    )


def _asking(settings: Settings, model_class: ModelClass) -> Asking:
    """How a generator of a class is asked, with the texts of `FOOTNOTE_PROMPT_FILE`.

    Raises:
        SetupError: The file cannot be used.
    """
    asking = ASKING[model_class]
    if not settings.prompt_file:
        return asking
    wording = read_wording(
        Path(settings.prompt_file),
        default=asking.wording,
        table=model_class.value,
        tables=frozenset(one.value for one in ModelClass),
    )
    return replace(asking, wording=wording)


def strategies(
    settings: Settings, model_class: ModelClass, quoting: Quoting, generating: Callable[[ModelClass], Generating]
) -> tuple[Strategy, ...]:
    """What answers beside a model of a class, in order: the first that can answer a question does.

    Without a language model, quotes alone.
    """
    if settings.extractive:
        return (quoting,)
    by_model = generating(model_class)
    return (quoting, by_model) if settings.quotes_first(model_class) else (by_model,)


def vector_stores_of(settings: Settings, database: Database, chunks: ChunkRepository) -> VectorStores:
    """The stores that the settings name."""
    if settings.vector_store == "pgvector":
        from app.documents.adapters.pgvector_store import PgVectorStores  # its driver is an extra

        return PgVectorStores(database, chunks=chunks)
    return FaissStores(settings.data_dir, chunks=chunks, device=settings.index_device)


def recorded_settings(settings: Settings, generation: IndexGeneration) -> Settings:
    """A copy of the settings whose embedder, precision and dimensions are those recorded with a generation."""
    int8 = "-int8" in generation.revision
    kept = "auto" if settings.embedder_dtype == "int8" else settings.embedder_dtype
    return settings.model_copy(
        update={
            "embedder": generation.source or generation.model,
            "embedder_dtype": "int8" if int8 else kept,
            "embedder_dimensions": generation.dim,
        }
    )


def _reader_beside(settings: Settings) -> SpanReader | None:
    """The span reader for an embedder about to be replaced; the default one where the configured one does not fit."""
    try:
        return load_reader(settings)
    except SetupError as error:
        logger().warning("reader.misfit", error=str(error))
        return load_reader(settings.model_copy(update={"reader": "auto"}))
