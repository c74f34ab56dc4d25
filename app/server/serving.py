"""The models one process serves, which change while it runs: loaded late, and replaced when the embedder changes."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

import sqlalchemy as sa

from app.answering.answerer import Answerer
from app.answering.generating.model_class import ModelClass
from app.db.audit import Record
from app.db.catalogue import CatalogueRepository
from app.db.contents import ContentRepository
from app.db.index_generations import IndexGeneration
from app.db.session import Database
from app.db.suggestions import SuggestionRepository
from app.documents.index_ports import RemovesChunks, VectorStore, WordStore
from app.documents.indexes import Indexes
from app.jobs.worker import Worker
from app.models.additions import ModelAdditions
from app.outbound.model_servers import ModelServers
from app.probing.probe import ModelProbe
from app.server.background_loading import BackgroundLoading
from app.server.searching import InlineAnswers
from app.settings import Settings
from app.suggestions.suggester import Suggester
from generation.ports import Engine, Tokenizer
from retrieval.ports import Embedder, Keys


@dataclass(frozen=True, slots=True)
class Models:
    """Everything that needs model weights; absent in a process that only reads and writes the database."""

    embedder: Embedder
    engine: Engine
    tokenizer: Tokenizer
    index: VectorStore
    lexical: WordStore
    answerer: Answerer
    worker: Worker
    inline: InlineAnswers

    @property
    def indexes(self) -> Indexes:
        """Both indexes, told of a change together."""
        return Indexes(self.index, self.lexical)


@dataclass(frozen=True, slots=True)
class Building:
    """Progress of the generation being built: `done` of `total` visible chunks; `error` is set where it failed."""

    generation: int
    done: int
    total: int
    error: str | None = None


class EmbedderSwapControl(Protocol):
    """The change from one embedder to another: its state, and the control of it by requests.

    Example:
        >>> swap.building  # while the new vectors are made
        Building(generation=2, done=4000, total=9000, error=None)
        >>> swap.confirm(2)  # when the new embedder has proved itself: deletes the old vectors
    """

    @property
    def building(self) -> Building | None:
        """Progress of the generation being built; None where none is."""
        ...

    @property
    def swapping(self) -> bool:
        """Whether ingestion pauses while one generation takes another's place."""
        ...

    def confirm(self, generation_id: int, *, record: Record | None = None) -> None:
        """Keep the generation in use, and delete earlier ones in the background."""
        ...

    def roll_back(self, generation_id: int, *, record: Record | None = None) -> IndexGeneration:
        """Return to the generation before the one in use."""
        ...

    def close(self) -> None:
        """Stop its thread."""
        ...


@dataclass(slots=True)
class Serving:
    """The models in use, and their replacements: the only state that changes while requests are served.

    `models` is None until they are loaded. `embedder_swap` is set before `models`, so a request that sees models sees
    the swap too. `loading` is set where models are loaded while requests are served. `incoming` is the index that is
    about to replace the one in use, `incoming_words` the word index before the first models are installed: deletions
    must reach them too. `probe` measures how well the generator reads, None before it is loaded and without one;
    `known_class` is what is known of it without a probe. `model_servers` tests remote servers for whoever chooses one,
    and `additions` downloads models; it is None in tests alone.

    Example:
        >>> serving = Serving(version="1.0")
        >>> serving.install(models)
        >>> serving.current().answerer
    """

    version: str = ""
    started_at: float = field(default_factory=time.time)  # Unix seconds
    models: Models | None = None
    embedder_swap: EmbedderSwapControl | None = None
    loading: BackgroundLoading | None = None
    incoming: VectorStore | None = None
    incoming_words: WordStore | None = None
    known_class: ModelClass = ModelClass.QUOTES
    probe: ModelProbe | None = None
    model_servers: ModelServers = field(default_factory=ModelServers)
    additions: ModelAdditions | None = None

    @classmethod
    def of(cls, settings: Settings, *, version: str, additions: ModelAdditions) -> "Serving":
        """The state of an installation whose models are not loaded yet."""
        servers = ModelServers(hosts=settings.webhook_hosts, configured=settings.remote_url)
        known = ModelClass(settings.known_class or ModelClass.QUOTES)
        return cls(version=version, known_class=known, model_servers=servers, additions=additions)

    def install(self, models: Models) -> None:
        """Answer requests that arrive from now on with `models`."""
        self.models = models

    def stop_worker(self) -> None:
        """Take no more jobs."""
        if self.models is not None:
            self.models.worker.stop()

    def close_index(self) -> None:
        """Save and close the index in use."""
        if self.models is not None:
            self.models.index.close()

    def current(self) -> Models:
        """The models in use. Only for callers that run after the models were installed."""
        assert self.models is not None, "models are installed"
        return self.models

    def served_class(self) -> ModelClass:
        """The class that the generator answers in now."""
        return self.known_class if self.probe is None else self.probe.standing.model_class

    def waiting_tokens(self) -> int:
        """Prompt tokens that wait for the generator."""
        return 0 if self.models is None else self.models.engine.stats().waiting_tokens

    def vectors(self) -> int:
        """Number of vectors in the index in use."""
        return 0 if self.models is None else len(self.models.index)

    def wake(self) -> None:
        """Wake the ingestion worker: a job was queued."""
        if self.models is not None:
            self.models.worker.wake()

    def remove_in(self, connection: sa.Connection, keys: Keys) -> None:
        """Remove chunks from these indexes inside the transaction that deletes them."""
        for index in self._told():
            index.remove_in(connection, keys)

    def forget(self, keys: Keys) -> None:
        """Remove deleted chunks from the indexes in use and from those about to be used."""
        for index in self._told():
            index.forget(keys)

    def suggester(self, database: Database, contents: ContentRepository, stack: ExitStack) -> Suggester:
        """The questions suggested for documents, found with the models in use; `stack` closes it."""
        suggester = Suggester(
            contents,
            CatalogueRepository(database),
            SuggestionRepository(database),
            answerer=lambda: None if self.models is None else self.models.answerer,
        )
        stack.callback(suggester.close)
        return suggester

    def _told(self) -> Iterator[RemovesChunks]:
        incoming, words = self.incoming, self.incoming_words  # read first: both reconcile after they are set
        models = self.models
        if models is not None:
            yield models.indexes
        elif words is not None:
            yield words
        if incoming is not None:
            yield incoming
