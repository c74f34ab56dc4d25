"""The composition root: builds every collaborator once, in dependency order, and closes them in reverse."""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version as distribution_version
from pathlib import Path

from app.access.authenticator import Authenticator, KeyLookup
from app.access.first_key import ensure_first_key
from app.access.local_key import LocalKey
from app.answering import Answerer
from app.consistency import remove_strays
from app.conversations import Conversations
from app.db.chunks import ChunkRepository
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.db.documents import DocumentRepository
from app.db.generations import GenerationRepository
from app.db.jobs import JobRepository
from app.db.keys import KeyRepository
from app.db.migration import upgrade
from app.db.session import Database
from app.files import FileStore
from app.finding import Finder
from app.identifiers import new_id
from app.index import LiveIndex, transfer_to
from app.intake import Intake
from app.jobs.worker import Worker
from app.loading import load_entailment, load_generator, load_reader, load_reranker
from app.locating import Locator
from app.lock import data_dir_lock
from app.models.folder import resolve
from app.question import Limits
from app.quoting import Quoter
from app.rewriter import Rewriter
from app.settings import Settings
from app.state import Models, State, Stations
from app.summaries import Summariser
from app.telemetry import Metrics, logger
from app.usage.ledger import Ledger
from app.usage.reports import UsageReports
from app.verification.billing import Verification
from app.wording import Wording, read_wording
from ingestion.types import ExtractionLimits

DEFAULT_TENANT = "default"


@contextmanager
def build(settings: Settings, *, with_models: bool = True, local_secret: str | None = None) -> Iterator[State]:
    """One running application over a data dir, which it holds alone.

    Args:
        settings: From `load_settings`.
        with_models: Load embedder and generator and start ingesting; without them only the books
            can be read and kept.
        local_secret: A key that exists in this process only, with the admin role (for the CLI).

    Raises:
        SetupError: The data dir is in use, the database is too new, a model is missing, or the
            index belongs to another embedder.
        RetrievalError: The embedder cannot be used, or the index's device is not there.
    """
    with ExitStack() as stack:
        stack.enter_context(data_dir_lock(settings.data_dir))
        database = Database.open(settings.resolved_database_url)
        stack.callback(database.close)
        upgrade(database)
        boot_id = new_id("boot")
        ledger = Ledger(database, boot_id=boot_id)
        jobs, documents = JobRepository(database), DocumentRepository(database)
        recovered, requeued = ledger.recover(), jobs.requeue_orphans(boot_id)
        if recovered or requeued:
            logger().warning("start.recovered", ledger_rows=recovered, jobs=requeued)
        keys, collections = KeyRepository(database), CollectionRepository(database)
        ensure_first_key(keys, settings.admin_key, tenant_id=DEFAULT_TENANT)
        files = FileStore(settings.data_dir / "files")
        files.clear_incoming()
        remove_strays(files, documents)
        metrics = Metrics()
        stations = Stations()
        intake = Intake(
            documents=documents, collections=collections, files=files, wake=stations.wake, forget=stations.forget
        )
        lookup: KeyLookup = keys
        if local_secret is not None:
            lookup = LocalKey(keys, secret=local_secret, tenant_id=DEFAULT_TENANT)
        if with_models:
            stations.models = _load_models(settings, stack, database, files, ledger, jobs, metrics, boot_id)
        gc.enable()  # the command line turns it off while it imports
        gc.freeze()  # what is loaded now stays: collections need not look at it again
        yield State(
            settings=settings,
            database=database,
            documents=documents,
            collections=collections,
            contents=ContentRepository(database),
            conversations=ConversationRepository(database),
            jobs=jobs,
            keys=keys,
            reports=UsageReports(database),
            files=files,
            intake=intake,
            authenticator=Authenticator(lookup),
            metrics=metrics,
            models=stations.models,
            started_at=time.time(),
            version=distribution_version("footnote-rag"),
        )


def _load_models(
    settings: Settings,
    stack: ExitStack,
    database: Database,
    files: FileStore,
    ledger: Ledger,
    jobs: JobRepository,
    metrics: Metrics,
    boot_id: str,
) -> Models:
    """Everything that needs weights. Heavy libraries are imported here, so that the rest starts fast."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded while serving
    os.environ.setdefault("TQDM_DISABLE", "1")  # libraries' progress bars do not belong into a server's log
    from app.lexical_index import LiveLexicalIndex
    from ingestion.child_extractor import ChildExtractor
    from ingestion.chunking import Chunker
    from ingestion.pipeline import Pipeline
    from retrieval.encoder import SentenceEncoder
    from retrieval.search import Search

    embedder = SentenceEncoder.load(
        resolve(settings.embedder, models_dir=settings.models_dir),
        device=settings.device,
        dtype=settings.dtype if settings.embedder_dtype == "auto" else settings.embedder_dtype,
        dimensions=settings.embedder_dimensions,
    )
    tokenizer, revision, engine = load_generator(settings, embedder)
    stack.callback(engine.close)

    chunks = ChunkRepository(database)
    generation = GenerationRepository(database).ensure(embedder.info)
    index = LiveIndex(
        settings.data_dir / "index",
        embedder=embedder.info,
        generation=generation,
        chunks=chunks,
        transfer=transfer_to(settings.index_device),
    )
    stack.callback(index.close)
    lexical = LiveLexicalIndex(settings.data_dir / "lexical", database=database, chunks=chunks, engine=settings.lexical)
    lexical.start()
    stack.callback(lexical.close)
    extractor = ChildExtractor(
        ExtractionLimits(seconds=settings.parse_seconds, memory_bytes=settings.parse_memory_mb << 20)
    )
    stack.callback(extractor.close)
    chunker = Chunker(
        embedder.tokenizer,
        max_tokens=min(settings.chunk_tokens, embedder.info.max_tokens),
        overlap=settings.chunk_overlap,
    )
    worker = Worker(
        jobs=jobs,
        files=files,
        pipeline=Pipeline(extractor, chunker, embedder),
        embedder=embedder,
        index=index,
        lexical=lexical,
        ledger=ledger,
        metrics=metrics,
        boot_id=boot_id,
    )
    summariser = Summariser(engine=engine, tokenizer=tokenizer, tokenizer_revision=revision, ledger=ledger)
    rewriter = Rewriter(engine=engine, tokenizer=tokenizer, tokenizer_revision=revision, ledger=ledger)
    reader = load_reader(settings)
    answerer = Answerer(
        finder=Finder(
            search=Search(embedder, index.current, lexical, chunks),
            embedder=embedder,
            ledger=ledger,
            reranker=load_reranker(settings),
            rerank_candidates=settings.rerank_candidates,
        ),
        engine=engine,
        tokenizer=tokenizer,
        tokenizer_revision=revision,
        contents=ContentRepository(database),
        ledger=ledger,
        limits=Limits(
            max_context_tokens=settings.max_context_tokens,
            max_output_tokens=settings.max_output_tokens,
            min_evidence=settings.min_evidence,
            highlight_tokens=settings.highlight_tokens,
            max_waiting=settings.max_waiting,
            abstention_threshold=None if settings.abstention_threshold == "model" else settings.abstention_threshold,
        ),
        locator=Locator(reader, ledger=ledger) if reader is not None else None,
        guide=Quoter(embedder=embedder, ledger=ledger) if reader is not None and not settings.extractive else None,
        verification=Verification(ledger=ledger, embedder=embedder, entailment=load_entailment(settings)),
        wording=read_wording(Path(settings.prompt_file)) if settings.prompt_file else Wording(),
        summariser=summariser if settings.overflow == "summarise" else None,
        quoter=Quoter(embedder=embedder, ledger=ledger) if settings.extractive else None,
        conversations=Conversations(
            ConversationRepository(database), count_tokens=tokenizer.count, history_tokens=settings.history_tokens
        ),
        rewriter=rewriter if settings.followup == "model" and not settings.extractive else None,
    )
    metrics.watch_engine(engine)
    metrics.watch_index(index)
    worker.start()
    stack.callback(worker.stop)
    return Models(
        embedder=embedder,
        engine=engine,
        tokenizer=tokenizer,
        index=index,
        lexical=lexical,
        answerer=answerer,
        worker=worker,
    )
