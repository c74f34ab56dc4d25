"""The application under golden answers: the product's own assembly around scripted models and the fixed library."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal
from fastapi.testclient import TestClient

from app.db.chunks import ChunkRepository
from app.db.index_generations import IndexGeneration
from app.documents.adapters.word_index import WordIndex
from app.documents.passwords import Passwords
from app.server.assembly import Assembly
from app.server.bootstrap import build
from app.server.embedder_swap import EmbedderStack
from app.server.serving import Models
from app.server.state import State
from app.settings import Settings
from generation.ports import Engine
from ingestion.extraction import LocalExtractor
from retrieval.ports import Reranker, SpanReader
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.conftest import ADMIN_KEY, client_of
from tests.app.api.test_reranking import LongestFirst
from tests.golden.library import DOCUMENTS
from tests.golden.script import Script, ScriptedEmbedder, ScriptedEngine, ScriptedReader
from tests.installation import installed

MODES: Mapping[str, Mapping[str, object]] = {
    "quotes": {"generator": "extractive"},
    "default": {"answers": "quotes", "unconfirmed": "quote"},
    "generated": {"answers": "generated", "unconfirmed": "keep"},
    "strict": {"answers": "generated", "unconfirmed": "quote", "strict": True},
    "models": {
        "answers": "generated",
        "unconfirmed": "quote",
        "followup": "model",
        "overflow": "summarise",
        "max_context_tokens": 700,
    },
}
"""The settings of each answer mode; `models` calls every model that an answer can call, a reranker too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAssembly(Assembly):
    """The product's assembly with a given span reader instead of a loaded one."""

    reader: SpanReader

    def stack_for(self, generation: IndexGeneration) -> EmbedderStack:
        """The stack of the configured embedder."""
        return self._stack(self.configured, self.reader)


class Application:
    """An application over a copy of the library, with the scripted models that it asks."""

    def __init__(self, state: State, http: TestClient, models: "ScriptedModels") -> None:
        self.state, self.http, self.models = state, http, models

    @property
    def portal(self) -> BlockingPortal:
        """The way into the application's event loop."""
        assert self.http.portal is not None, "the client is entered"
        return self.http.portal

    def start(self, script: Script | None = None) -> None:
        """Begin a case: new models without anything in their caches, so that no case depends on one before it."""
        self.models.engine.start(script or Script())
        self.models.reader.breaks = False
        self.state.serving.install(self.models.assembled())

    @property
    def idle(self) -> bool:
        """Whether no slot is held and nothing can be cancelled."""
        admission = self.state.limits.admission
        slots = (admission.generation_slots, admission.preparation_slots)
        return not any(line.held for line in slots) and len(self.state.serving.current().answerer.running) == 0


class ScriptedModels:
    """The scripted models, and the assembly around them; `assembled` may be called any number of times."""

    def __init__(self, state: State, words: WordIndex, *, reranker: Reranker | None) -> None:
        self.engine, self.embedder, self.reader = ScriptedEngine(), ScriptedEmbedder(), ScriptedReader()
        engine: Engine = self.engine
        assembly = ScriptedAssembly(
            settings=state.settings,
            database=state.database,
            files=state.corpus.files,
            ledger=state.usage.ledger,
            jobs=state.corpus.jobs,
            instruments=state.telemetry.instruments,
            asked=state.history.asked,
            chunks=ChunkRepository(state.database),
            lexical=words,
            extractor=LocalExtractor(),
            inline_extractor=LocalExtractor(),
            parsers=1,
            passwords=Passwords(),
            configured=self.embedder,
            generator=(CharacterTokenizer(), "0", engine),
            reranker=reranker,
            judge=None,
            entailment=None,
            served_class=state.serving.served_class,
            reader=self.reader,
        )
        active = state.corpus.generations.prepare(self.embedder.info, source="hashing").active
        self._stack = assembly.stack_for(active)
        self.index = self._stack.open_index(active.id)
        self.index.reconcile()

    def assembled(self) -> Models:
        """New models around the same index."""
        return self._stack.assemble(self.index)

    def free(self) -> None:
        """Open all gates."""
        for gate in (self.embedder.before_query, self.embedder.before_documents, self.reader.gate):
            gate.free()


def make_library(data_dir: Path) -> Path:
    """Ingest the library into a new data dir, one document after another; returns the data dir."""
    with serving(installed(data_dir), {}) as application:
        worker = application.state.serving.current().worker
        worker.start()
        try:
            for name, text in DOCUMENTS.items():
                sent = application.http.post(
                    "/v1/documents", files={"file": (name, text.encode())}, data={"wait": "30"}
                )
                assert sent.json()["status"] == "indexed", sent.text
        finally:
            worker.stop()
    return data_dir


@contextmanager
def serving(data_dir: Path, settings: Mapping[str, Any], *, reranks: bool = False) -> Iterator[Application]:
    """Serve a data dir until the end of the block."""
    sizes = {"chunk_tokens": 32, "chunk_overlap": 4}  # so that a short document has several chunks
    configured = Settings(data_dir=data_dir, admin_key=ADMIN_KEY, _env_file=None, **{**sizes, **settings})
    with build(configured, with_models=False) as state:
        words = WordIndex(data_dir / "lexical", database=state.database, chunks=ChunkRepository(state.database))
        words.start()
        models = ScriptedModels(state, words, reranker=LongestFirst() if reranks else None)
        try:
            state.serving.install(models.assembled())
            with client_of(state) as http:
                yield Application(state, http, models)
        finally:
            models.free()
            state.serving.close_index()
            words.close()
            models.engine.close()


@contextmanager
def mode(name: str, library: Path, scratch: Path, **settings: object) -> Iterator[Application]:
    """Serve a copy of the library in one of `MODES`, with more settings if any are given."""
    copy = scratch / name
    shutil.copytree(library, copy)
    try:
        with serving(copy, {**MODES[name], **settings}, reranks=name == "models") as application:
            yield application
    finally:
        shutil.rmtree(copy, ignore_errors=True)
