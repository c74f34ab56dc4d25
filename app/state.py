"""What the composition root builds and everything else is handed."""

from dataclasses import dataclass

from app.access.authenticator import Authenticator
from app.answering import Answerer
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.db.documents import DocumentRepository
from app.db.jobs import JobRepository
from app.db.keys import KeyRepository
from app.db.session import Database
from app.files import FileStore
from app.index import LiveIndex
from app.intake import Intake
from app.jobs.worker import Worker
from app.lexical_index import LiveLexicalIndex
from app.settings import Settings
from app.telemetry import Metrics
from app.usage.reports import UsageReports
from generation.ports import Engine, Tokenizer
from retrieval.ports import Embedder, Keys


@dataclass(frozen=True, slots=True)
class Models:
    """The stations that need model weights; absent in a process that only keeps books."""

    embedder: Embedder
    engine: Engine
    tokenizer: Tokenizer
    index: LiveIndex
    lexical: LiveLexicalIndex
    answerer: Answerer
    worker: Worker


@dataclass(frozen=True, slots=True)
class State:
    """One running application."""

    settings: Settings
    database: Database
    documents: DocumentRepository
    collections: CollectionRepository
    contents: ContentRepository
    conversations: ConversationRepository
    jobs: JobRepository
    keys: KeyRepository
    reports: UsageReports
    files: FileStore
    intake: Intake
    authenticator: Authenticator
    metrics: Metrics
    models: Models | None
    started_at: float
    version: str


class Stations:
    """What the intake tells the worker and the index, once they exist."""

    def __init__(self) -> None:
        self.models: Models | None = None

    def wake(self) -> None:
        """A job waits."""
        if self.models is not None:
            self.models.worker.wake()

    def forget(self, keys: Keys) -> None:
        """Chunks were deleted."""
        if self.models is not None:
            self.models.index.forget(keys)
            self.models.lexical.forget(keys)
