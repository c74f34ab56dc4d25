"""One running application in parts by subject, so that each caller takes only the part it needs."""

from dataclasses import dataclass

from app.access.authenticator import Authenticator
from app.access.last_use import LastUses
from app.access.openid import OpenId
from app.access.provider_tokens import ProviderTokens
from app.admission.address_rate import AddressRate
from app.admission.admission import Admission
from app.admission.event_streams import EventStreams
from app.admission.quota_rows import QuotaRepository
from app.db.answer_tables import AnswerTableRepository
from app.db.asked_questions import AskedQuestionRepository
from app.db.audit import AuditLog
from app.db.cancel_requests import CancelRequestRepository
from app.db.cited_passages import CitedPassageRepository
from app.db.collections import CollectionRepository
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.db.documents import DocumentRepository
from app.db.feedback import FeedbackRepository
from app.db.idempotency import IdempotencyRepository
from app.db.index_generations import IndexGenerationRepository
from app.db.invitations import InvitationRepository
from app.db.jobs import JobRepository
from app.db.keys import KeyRepository
from app.db.session import Database
from app.db.sessions import SessionRepository
from app.db.stored_responses import StoredResponseRepository
from app.db.tenants import TenantRepository
from app.db.users import UserRepository
from app.db.watches import WatchRepository
from app.documents.consistency import Reconciler
from app.documents.files import DocumentFiles
from app.documents.intake import Intake
from app.documents.openai_files import OpenAIFiles
from app.documents.passage_boxes import PassageBoxes
from app.documents.reindexing import Reindexer
from app.documents.watch import DocumentWatch
from app.outbound.mail import Mailer
from app.outbound.threads import OutboundThreads
from app.outbound.web_pages import WebPages
from app.outbound.webhooks import Webhooks
from app.receipts.signing_keys import SigningKeys
from app.server.serving import Serving
from app.settings import Settings
from app.suggestions.suggester import Suggester
from app.telemetry.metrics import Metrics
from app.telemetry.timing import Instruments
from app.usage.budgets.alert_rows import AlertRepository
from app.usage.budgets.repository import BudgetRepository
from app.usage.ledger.adjustments import Adjustments
from app.usage.ledger.ledger import Ledger
from app.usage.ledger.prices import PriceRepository
from app.usage.ledger.rerating import Rerater
from app.usage.overview.reports import OverviewReports
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from app.usage.reports.raw_ledger import RawLedger
from app.usage.reports.reports import UsageReports
from app.usage.rollups.builder import RollupBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsState:
    """Documents, their collections, files and ingestion jobs, and the questions suggested for them.

    `web_pages` is None where fetching is turned off. `page_threads` fetch web pages.
    """

    documents: DocumentRepository
    watch: DocumentWatch
    collections: CollectionRepository
    contents: ContentRepository
    passage_boxes: PassageBoxes
    files: DocumentFiles
    intake: Intake
    web_pages: WebPages | None
    page_threads: OutboundThreads
    jobs: JobRepository
    reindexer: Reindexer
    openai_files: OpenAIFiles
    suggester: Suggester
    generations: IndexGenerationRepository
    reconciler: Reconciler


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Conversations with the questions under way, responses, passages that they cite, feedback, watches, tables.

    `cancels` asks other processes to cancel an answer; None for a process that is alone.
    """

    conversations: ConversationRepository
    responses: StoredResponseRepository
    passages: CitedPassageRepository
    asked: AskedQuestionRepository
    feedback: FeedbackRepository
    watches: WatchRepository
    tables: AnswerTableRepository
    cancels: CancelRequestRepository | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessState:
    """Keys, sessions, users and tenants, the check of a caller's secret, and the audit log of their changes.

    `openid` is None without a provider, `provider_tokens` where its access tokens are not accepted. `openid_threads`
    wait for the provider; `openid_rate` limits its sign-ins. `mailer` is None without a mail server; `mail_threads`
    wait for it. `last_uses` has the latest uses of keys. `signing_keys` sign receipts.
    """

    authenticator: Authenticator
    keys: KeyRepository
    sessions: SessionRepository
    openid: OpenId | None
    provider_tokens: ProviderTokens | None
    openid_threads: OutboundThreads
    openid_rate: AddressRate
    users: UserRepository
    tenants: TenantRepository
    invitations: InvitationRepository
    mailer: Mailer | None
    mail_threads: OutboundThreads
    last_uses: LastUses
    signing_keys: SigningKeys
    audit: AuditLog


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageState:
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
    overview: OverviewReports
    reconciliation: LedgerReconciliation


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionState:
    """Admission of requests, places for event streams, and the quotas set for single keys and tenants."""

    admission: Admission
    event_streams: EventStreams
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
    corpus: DocumentsState
    history: History
    access: AccessState
    usage: UsageState
    limits: AdmissionState
    telemetry: Telemetry
    serving: Serving
