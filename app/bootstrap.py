"""The composition root: builds every collaborator once, in dependency order, and closes them in reverse."""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version as distribution_version
from typing import TYPE_CHECKING

from app.access.authenticator import Authenticator, KeyLookup
from app.access.first_key import ensure_first_key
from app.access.local_key import LocalKey
from app.answering import Answerer
from app.consistency import remove_strays
from app.db.chunks import ChunkRepository
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.documents import DocumentRepository
from app.db.generations import GenerationRepository
from app.db.jobs import JobRepository
from app.db.keys import KeyRepository
from app.db.migration import upgrade
from app.db.session import Database
from app.errors import SetupError
from app.files import FileStore
from app.finding import Finder
from app.identifiers import new_id
from app.index import LiveIndex, transfer_to
from app.intake import Intake
from app.jobs.worker import Worker
from app.lock import data_dir_lock
from app.models.folder import resolve
from app.question import Limits
from app.settings import Settings
from app.state import Models, State, Stations
from app.summaries import Summariser
from app.telemetry import Metrics, logger
from app.usage.ledger import Ledger
from app.usage.reports import UsageReports
from generation.config import EngineConfig
from generation.ports import Engine
from generation.remote_config import RemoteConfig
from ingestion.types import ExtractionLimits
from retrieval.ports import Reranker

if TYPE_CHECKING:
    from generation.tokenizer import ChatTokenizer

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
    from generation.tokenizer import ChatTokenizer
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
    generator = resolve(settings.generator, models_dir=settings.models_dir)
    tokenizer = ChatTokenizer.load(generator)
    engine = (
        _remote_engine(settings, tokenizer) if settings.remote_url else _local_engine(settings, generator, tokenizer)
    )
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
    summariser = Summariser(engine=engine, tokenizer=tokenizer, tokenizer_revision=tokenizer.revision, ledger=ledger)
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
        tokenizer_revision=tokenizer.revision,
        contents=ContentRepository(database),
        ledger=ledger,
        limits=Limits(
            max_context_tokens=settings.max_context_tokens,
            max_output_tokens=settings.max_output_tokens,
            min_evidence=settings.min_evidence,
            max_waiting=settings.max_waiting,
        ),
        summariser=summariser if settings.overflow == "summarise" else None,
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


def load_reranker(settings: Settings) -> Reranker | None:
    """The reranker the settings name; None when they name none.

    Raises:
        SetupError: The setting leads nowhere.
        RerankerUnavailable: The model is not installed, cannot be loaded, or is no reranker.
    """
    if not settings.reranker:
        return None
    from retrieval.cross_encoder import CrossEncoderReranker

    return CrossEncoderReranker.load(
        resolve(settings.reranker, models_dir=settings.models_dir), device=settings.device, dtype=settings.dtype
    )


def _local_engine(settings: Settings, generator: str, tokenizer: "ChatTokenizer") -> Engine:
    """The engine in this process; its weights are loaded once, and it is restarted when it dies."""
    from generation.engine import LocalEngine
    from generation.supervisor import SupervisedEngine

    return SupervisedEngine(LocalEngine.loader(engine_config(settings, generator=generator), tokenizer))


def _remote_engine(settings: Settings, tokenizer: "ChatTokenizer") -> Engine:
    """An engine over another server; the tokenizer must be its model's."""
    from generation.remote import RemoteEngine

    return RemoteEngine.load(remote_config(settings), tokenizer)


def remote_config(settings: Settings) -> RemoteConfig:
    """How the settings want the remote server reached.

    Raises:
        SetupError: They cannot be used.
    """
    key = settings.remote_api_key
    try:
        return RemoteConfig(
            base_url=settings.remote_url,
            model=settings.remote_model,
            api_key=key.get_secret_value() if key is not None else None,
            context_window=settings.context_window,
            max_running=settings.max_running,
            max_waiting=settings.max_waiting,
        )
    except ValueError as error:
        raise SetupError(f"The remote server's settings are not usable: {error}.") from None


def engine_config(settings: Settings, *, generator: str) -> EngineConfig:
    """How the settings want the local engine run.

    Raises:
        SetupError: The draft model is not on this machine.
    """
    draft_model = resolve(settings.draft_model, models_dir=settings.models_dir) if settings.draft_model else None
    return EngineConfig(
        model=generator,
        device=settings.device,
        dtype=settings.dtype,
        max_running=settings.max_running,
        max_waiting=settings.max_waiting,
        step_tokens=settings.step_tokens,
        context_window=settings.context_window,
        kv_cache_bytes=settings.kv_cache_mb << 20 if settings.kv_cache_mb is not None else None,
        weights=settings.weights,
        speculation=settings.speculation,
        draft_model=draft_model,
    )
