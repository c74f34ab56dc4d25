"""What the composition root builds and everything else is handed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from app.access.authenticator import Authenticator
from app.access.openid import OpenId
from app.admission.admission import Admission
from app.admission.quota_rows import QuotaRepository
from app.answering.answerer import Answerer
from app.db.audit import AuditLog, Record
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.db.documents import DocumentRepository
from app.db.feedback import FeedbackRepository
from app.db.generations import Generation, GenerationRepository
from app.db.idempotency import IdempotencyRepository
from app.db.jobs import JobRepository
from app.db.keys import KeyRepository
from app.db.session import Database
from app.db.sessions import SessionRepository
from app.db.tenants import TenantRepository
from app.db.users import UserRepository
from app.documents.consistency_watch import Reconciler
from app.documents.intake import Intake
from app.documents.openai_files import OpenAIFiles
from app.documents.originals import FileStore
from app.documents.passage_boxes import PassageBoxes
from app.documents.reindexing import Reindexer
from app.documents.vector_index import LiveVectorIndex
from app.documents.word_index import LiveWordIndex
from app.jobs.worker import Worker
from app.outbound.web_pages import WebPages
from app.outbound.webhooks import Webhooks
from app.settings import Settings
from app.telemetry.metrics import Metrics
from app.telemetry.stations import Instruments
from app.usage.budgets.alert_rows import AlertRepository
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.adjustments import Adjustments
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.prices import PriceBook
from app.usage.ledger.rerating import Rerater
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from app.usage.reports.raw_ledger import RawLedger
from app.usage.reports.reports import UsageReports
from app.usage.rollups.builder import RollupBuilder
from generation.ports import Engine, Tokenizer
from retrieval.ports import Embedder, Keys

if TYPE_CHECKING:
    from app.server.background_loading import BackgroundLoading


@dataclass(frozen=True, slots=True)
class Models:
    """The stations that need model weights; absent in a process that only keeps books."""

    embedder: Embedder
    engine: Engine
    tokenizer: Tokenizer
    index: LiveVectorIndex
    lexical: LiveWordIndex
    answerer: Answerer
    worker: Worker


@dataclass(frozen=True, slots=True)
class Building:
    """How far the generation being built is: `done` of `total` visible chunks; `error` says why it stands still."""

    generation: int
    done: int
    total: int
    error: str | None = None


class EmbedderSwapControl(Protocol):
    """What requests may see and ask of the change from one embedder to another."""

    @property
    def building(self) -> Building | None:
        """How far the generation being built is; None where none is."""
        ...

    @property
    def swapping(self) -> bool:
        """Whether ingestion pauses while one generation takes another's place."""
        ...

    def confirm(self, generation_id: int, *, record: Record | None = None) -> None:
        """Keep the generation in use, and delete those before it in the background."""
        ...

    def roll_back(self, generation_id: int, *, record: Record | None = None) -> Generation:
        """Return to the generation before the one in use."""
        ...

    def close(self) -> None:
        """Stop its thread."""
        ...


@dataclass(slots=True)
class State:
    """One running application.

    Only `models` changes: None until they are loaded, then others when a new embedder is ready. Whoever sees models
    sees the `embedder_swap` too. `loading` is there where they are loaded while requests are served.
    """

    settings: Settings
    database: Database
    documents: DocumentRepository
    collections: CollectionRepository
    contents: ContentRepository
    passage_boxes: PassageBoxes
    conversations: ConversationRepository
    feedback: FeedbackRepository
    jobs: JobRepository
    generations: GenerationRepository
    idempotency: IdempotencyRepository
    keys: KeyRepository
    tenants: TenantRepository
    users: UserRepository
    sessions: SessionRepository
    openid: OpenId | None
    ledger: Ledger
    raw_ledger: RawLedger
    reports: UsageReports
    rollups: RollupBuilder
    audit: AuditLog
    budgets: BudgetRepository
    alerts: AlertRepository
    webhooks: Webhooks
    prices: PriceBook
    adjustments: Adjustments
    rerater: Rerater
    files: FileStore
    intake: Intake
    openai_files: OpenAIFiles
    reindexer: Reindexer
    web_pages: WebPages | None
    authenticator: Authenticator
    admission: Admission
    quotas: QuotaRepository
    metrics: Metrics
    instruments: Instruments
    reconciler: Reconciler
    ledger_reconciliation: LedgerReconciliation
    models: Models | None
    embedder_swap: "EmbedderSwapControl | None"
    started_at: float
    version: str
    loading: "BackgroundLoading | None" = None


class Stations:
    """What the intake tells the worker and the index, once they exist."""

    def __init__(self) -> None:
        self.models: Models | None = None
        self.incoming: LiveVectorIndex | None = None  # takes the index's place in a moment
        self.incoming_words: LiveWordIndex | None = None  # is the first one in a moment
        self.state: State | None = None

    def install(self, models: Models) -> None:
        """Answer requests that come from now on with other models."""
        self.models = models
        if self.state is not None:
            self.state.models = models

    def stop_worker(self) -> None:
        """Take no more jobs."""
        if self.models is not None:
            self.models.worker.stop()

    def close_index(self) -> None:
        """Save and close the index in use."""
        if self.models is not None:
            self.models.index.close()

    def current(self) -> Models:
        """What requests are answered with; only for whoever knows that this process has models."""
        assert self.models is not None, "asked for in a process with models"
        return self.models

    def waiting_tokens(self) -> int:
        """Prompt tokens that wait for the generator."""
        return 0 if self.models is None else self.models.engine.stats().waiting_tokens

    def vectors(self) -> int:
        """How many vectors the index in use holds."""
        return 0 if self.models is None else len(self.models.index)

    def wake(self) -> None:
        """A job waits."""
        if self.models is not None:
            self.models.worker.wake()

    def forget(self, keys: Keys) -> None:
        """Chunks were deleted."""
        incoming, words = self.incoming, self.incoming_words  # looked at first: reconciled after they were set
        models = self.models
        if models is not None:
            models.index.forget(keys)
            models.lexical.forget(keys)
        elif words is not None:
            words.forget(keys)
        if incoming is not None:
            incoming.forget(keys)
