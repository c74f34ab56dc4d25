"""The application with a hashing embedder, a scripted model and an extractor in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from app.answering import Answerer
from app.bootstrap import build
from app.db.chunks import ChunkRepository
from app.db.generations import GenerationRepository
from app.finding import Finder
from app.index import LiveIndex
from app.jobs.worker import Worker
from app.lexical_index import LiveLexicalIndex
from app.question import Limits
from app.settings import Settings
from app.state import Models, State
from app.usage.ledger import Ledger
from generation.config import EngineConfig
from generation.constraints import TokenConstraint
from generation.engine import LocalEngine
from generation.ports import Engine
from generation.types import Constraint, ModelInfo
from ingestion.chunking import Chunker
from ingestion.extraction import LocalExtractor
from ingestion.pipeline import Pipeline
from retrieval.search import Search
from tests.generation.fakes import EOS, LetterTokenizer, ScriptedRunner
from tests.ingestion.small_tokenizer import word_piece
from tests.retrieval.fakes import HashingEmbedder


class Anything:
    """Implements `TokenConstraint`: every token may come next."""

    def mask(self) -> None:
        return None

    def allows(self, token_id: int) -> bool:
        return True

    def advance(self, token_id: int) -> None:
        """Nothing is remembered."""

    def clone(self) -> "Anything":
        return self


class Unconstrained:
    """Implements `Constraints`: the scripted model writes what it writes."""

    def compile(self, constraint: Constraint) -> TokenConstraint:
        return Anything()


SAYS = "The keeper counted forty ships [1]."


@contextmanager
def application(data_dir: Path) -> Iterator[State]:
    """A state over `data_dir` whose worker runs and whose model says `SAYS` to everything."""
    settings = Settings(data_dir=data_dir, admin_key="fn_test_admin_key_of_the_suite", _env_file=None)
    engine = LocalEngine(
        ScriptedRunner(SAYS),
        LetterTokenizer(),
        EngineConfig(model="scripted", step_tokens=10_000),
        info=ModelInfo(model="scripted", revision="0", context_window=20_000, device="cpu", dtype="float32"),
        eos_ids=frozenset({EOS}),
        vocab_size=0x110000,
        constraints=Unconstrained(),
    )
    with build(settings, with_models=False) as bare:
        models = _models(bare, engine)
        models.worker.start()
        try:
            yield replace(bare, models=models)
        finally:
            models.worker.stop()
            engine.close()


def _models(state: State, engine: Engine) -> Models:
    embedder, tokenizer, chunks = HashingEmbedder(max_tokens=64), LetterTokenizer(), ChunkRepository(state.database)
    ledger = Ledger(state.database, boot_id="boot-1")
    generation = GenerationRepository(state.database).ensure(embedder.info)
    folder = state.settings.data_dir / "index"
    index = LiveIndex(folder, embedder=embedder.info, generation=generation, chunks=chunks)
    lexical = LiveLexicalIndex(folder.parent / "lexical", database=state.database, chunks=chunks)
    worker = Worker(
        jobs=state.jobs,
        files=state.files,
        pipeline=Pipeline(LocalExtractor(), Chunker(word_piece(), max_tokens=64, overlap=8), embedder),
        embedder=embedder,
        index=index,
        lexical=lexical,
        ledger=ledger,
        metrics=state.metrics,
        boot_id="boot-1",
    )
    answerer = Answerer(
        finder=Finder(search=Search(embedder, index.current, lexical, chunks), embedder=embedder, ledger=ledger),
        engine=engine,
        tokenizer=tokenizer,
        tokenizer_revision="r",
        contents=state.contents,
        ledger=ledger,
        limits=Limits(max_context_tokens=2000, max_output_tokens=64, min_evidence=0.3, max_waiting=8),
    )
    return Models(
        embedder=embedder,
        engine=engine,
        tokenizer=tokenizer,
        index=index,
        lexical=lexical,
        answerer=answerer,
        worker=worker,
    )
