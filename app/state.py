"""What the composition root builds and everything else is handed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.access.authenticator import Authenticator
from app.answering import Answerer
from app.db.alerts import AlertRepository
from app.db.audit import AuditLog
from app.db.budgets import BudgetRepository
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.db.documents import DocumentRepository
from app.db.generations import GenerationRepository
from app.db.idempotency import IdempotencyRepository
from app.db.jobs import JobRepository
from app.db.keys import KeyRepository
from app.db.session import Database
from app.files import FileStore
from app.index import LiveIndex
from app.intake import Intake
from app.jobs.worker import Worker
from app.lexical_index import LiveLexicalIndex
from app.reconciliation import Reconciler
from app.reindexing import Reindexer
from app.settings import Settings
from app.telemetry import Metrics
from app.usage.adjustments import Adjustments
from app.usage.ledger import Ledger
from app.usage.prices import PriceBook
from app.usage.raw_ledger import RawLedger
from app.usage.reconciliation import LedgerReconciliation
from app.usage.reports import UsageReports
from app.usage.rerating import Rerater
from app.usage.rollup_builder import RollupBuilder
from app.web_pages import WebPages
from app.webhooks import Webhooks
from generation.ports import Engine, Tokenizer
from retrieval.ports import Embedder, Keys

if TYPE_CHECKING:
    from app.cutover import Cutover


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


@dataclass(slots=True)
class State:
    """One running application. Only `models` changes: others take their place when a new embedder is ready."""

    settings: Settings
    database: Database
    documents: DocumentRepository
    collections: CollectionRepository
    contents: ContentRepository
    conversations: ConversationRepository
    jobs: JobRepository
    generations: GenerationRepository
    idempotency: IdempotencyRepository
    keys: KeyRepository
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
    reindexer: Reindexer
    web_pages: WebPages | None
    authenticator: Authenticator
    metrics: Metrics
    reconciler: Reconciler
    ledger_reconciliation: LedgerReconciliation
    models: Models | None
    cutover: "Cutover | None"
    started_at: float
    version: str


class Stations:
    """What the intake tells the worker and the index, once they exist."""

    def __init__(self) -> None:
        self.models: Models | None = None
        self.incoming: LiveIndex | None = None  # takes the index's place in a moment
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

    def vectors(self) -> int:
        """How many vectors the index in use holds."""
        return 0 if self.models is None else len(self.models.index)

    def wake(self) -> None:
        """A job waits."""
        if self.models is not None:
            self.models.worker.wake()

    def forget(self, keys: Keys) -> None:
        """Chunks were deleted."""
        incoming = self.incoming  # looked at first: what comes in is reconciled after it was set
        if self.models is not None:
            self.models.index.forget(keys)
            if incoming is not None:
                incoming.forget(keys)
            self.models.lexical.forget(keys)
