"""One running application in parts by subject, so that each caller takes only the part it needs."""

from dataclasses import dataclass

from app.access.authenticator import Authenticator
from app.access.openid import OpenId
from app.admission.admission import Admission
from app.admission.quota_rows import QuotaRepository
from app.db.audit import AuditLog
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.db.documents import DocumentRepository
from app.db.feedback import FeedbackRepository
from app.db.generations import GenerationRepository
from app.db.idempotency import IdempotencyRepository
from app.db.jobs import JobRepository
from app.db.keys import KeyRepository
from app.db.session import Database
from app.db.sessions import SessionRepository
from app.db.tenants import TenantRepository
from app.db.users import UserRepository
from app.documents.consistency import Reconciler
from app.documents.intake import Intake
from app.documents.openai_files import OpenAIFiles
from app.documents.originals import FileStore
from app.documents.passage_boxes import PassageBoxes
from app.documents.reindexing import Reindexer
from app.outbound.web_pages import WebPages
from app.outbound.webhooks import Webhooks
from app.server.serving import Serving
from app.settings import Settings
from app.telemetry.metrics import Metrics
from app.telemetry.stations import Instruments
from app.usage.budgets.alert_rows import AlertRepository
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.adjustments import Adjustments
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.prices import PriceRepository
from app.usage.ledger.rerating import Rerater
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from app.usage.reports.raw_ledger import RawLedger
from app.usage.reports.reports import UsageReports
from app.usage.rollups.builder import RollupBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Documents, their collections, files and ingestion jobs. `web_pages` is None where fetching is turned off."""

    documents: DocumentRepository
    collections: CollectionRepository
    contents: ContentRepository
    passage_boxes: PassageBoxes
    files: FileStore
    intake: Intake
    web_pages: WebPages | None
    jobs: JobRepository
    reindexer: Reindexer
    openai_files: OpenAIFiles
    generations: GenerationRepository
    reconciler: Reconciler


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Conversations, and the feedback users gave on answers."""

    conversations: ConversationRepository
    feedback: FeedbackRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Keys, sessions, users and tenants, the check of a caller's secret, and the audit log of their changes."""

    authenticator: Authenticator
    keys: KeyRepository
    sessions: SessionRepository
    openid: OpenId | None
    users: UserRepository
    tenants: TenantRepository
    audit: AuditLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The ledger of model calls with its prices, budgets, rollups and reports."""

    ledger: Ledger
    raw_ledger: RawLedger
    prices: PriceRepository
    adjustments: Adjustments
    rerater: Rerater
    budgets: BudgetRepository
    alerts: AlertRepository
    webhooks: Webhooks
    rollups: RollupBuilder
    reports: UsageReports
    reconciliation: LedgerReconciliation


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Admission of requests, and the quotas set for single keys and tenants."""

    admission: Admission
    quotas: QuotaRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """Metrics and traces."""

    metrics: Metrics
    instruments: Instruments


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One running application, built by `app.server.bootstrap.build`. Only `serving` changes while it runs.

    Example:
        >>> with build(settings) as state:
        ...     state.corpus.collections.list("default")
        ...     state.usage.ledger.usage("req_1")
    """

    settings: Settings
    database: Database
    idempotency: IdempotencyRepository
    corpus: Corpus
    history: History
    access: Access
    usage: Usage
    limits: Limits
    telemetry: Telemetry
    serving: Serving
