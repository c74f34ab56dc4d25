"""The nouns of the application. Imports only lower `types`, so everyone in `app` may import it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from retrieval.types import Metadata

DEFAULT_TENANT = "default"
"""The tenant every installation begins with; its unlimited administrators operate the installation."""


class Role(StrEnum):
    """What a key may do: administer, read and write documents, or only read and ask."""

    ADMIN = "admin"
    MEMBER = "member"
    READER = "reader"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking, from the authenticated key alone. `collections` limits a key; None is no limit."""

    tenant_id: str
    user_id: str
    key_id: str
    role: Role
    collections: tuple[str, ...] | None = None

    @property
    def is_operator(self) -> bool:
        """Whether this is an administrator of the whole installation: of the first tenant, without a limit."""
        return self.role is Role.ADMIN and self.tenant_id == DEFAULT_TENANT and self.collections is None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as administrators see it; the secret is never stored, only its prefix and SHA-256.

    Times are Unix seconds. `previous_…` is the secret before the last rotation, which works beside the new one
    until it expires; None where the key was never rotated.
    """

    id: str
    tenant_id: str
    user_id: str
    name: str
    role: Role
    prefix: str
    collections: tuple[str, ...] | None
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    rotated_at: float | None = None
    previous_prefix: str | None = None
    previous_expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """A named group of a tenant's documents. Times are Unix seconds."""

    id: str
    tenant_id: str
    name: str
    metadata: Metadata
    created_at: float
    documents: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """Questions and answers that follow each other, of one user. Times are Unix seconds.

    `key_id` is set where the key that began it is limited to collections; then no other key adds to it.
    A `shared` one may be read by the whole tenant.
    """

    id: str
    tenant_id: str
    user_id: str
    key_id: str | None
    title: str | None
    metadata: Metadata
    created_at: float
    updated_at: float
    turns: int
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question as it was asked and its answer.

    `standalone` is the question rewritten to be understood without the turns before it; None where it was
    so already. `citations` are the answer's footnotes, `making` is how it was made
    (`app.answering.conversations`), both in JSON's types; a turn of before that was kept has no `making`.
    """

    request_id: str
    question: str
    standalone: str | None
    answer: str
    answered: bool
    citations: tuple[Mapping[str, object], ...]
    making: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTurn(Turn):
    """A turn in its conversation: the `ordinal`th, from 1. `created_at` is Unix seconds."""

    ordinal: int
    created_at: float


class DocumentStatus(StrEnum):
    """A document's newest version: waiting, in a stage, visible, or failed with a reason."""

    QUEUED = "queued"
    EXTRACTING = "extracting"
    CHUNKING = "chunking"
    EMBEDDING = "embedding"
    INDEXED = "indexed"
    FAILED = "failed"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True)
class NewDocument:
    """An upload whose bytes are already on disk under `document_id` and `version`."""

    id: str
    tenant_id: str
    collection_id: str
    filename: str
    bytes: int
    sha256: str
    external_id: str | None
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Document:
    """A document as people see it. `version` is the newest, `live_version` the one search returns (None: none yet).

    `done`/`total` count units of the current stage. Counts and embedding facts are those of the
    live version, `error` those of the newest attempt. `next_attempt_at` is set while a job that was tried waits
    to be tried again. Times are Unix seconds.
    """

    id: str
    tenant_id: str
    collection_id: str
    external_id: str | None
    filename: str
    media_type: str | None
    bytes: int
    sha256: str
    metadata: Metadata
    version: int
    live_version: int | None
    status: DocumentStatus
    done: int
    total: int
    pages: int
    chunks: int
    tokens: int
    embedding_model: str | None
    embedding_dim: int | None
    embedding_generation: int | None
    embedding_tokens: int
    attempts: int
    error_code: str | None
    error_detail: str | None
    next_attempt_at: float | None
    job_id: str
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """One version of a document. Counts are 0 and `indexed_at` is None before it is indexed. Times are Unix seconds."""

    version: int
    filename: str
    bytes: int
    sha256: str
    media_type: str | None
    title: str | None
    pages: int
    chunks: int
    tokens: int
    embedding_tokens: int
    created_at: float
    indexed_at: float | None


class JobStatus(StrEnum):
    """A job's life."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Job:
    """One ingestion of one document version. Times are Unix seconds.

    `next_attempt_at` is set while it was tried and waits to be tried again; `error` then says why.
    """

    id: str
    tenant_id: str
    document_id: str
    version: int
    status: JobStatus
    attempts: int
    replace: bool
    user_id: str
    key_id: str
    error_code: str | None
    error_detail: str | None
    created_at: float
    next_attempt_at: float | None
    started_at: float | None
    finished_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexing:
    """All documents of a collection, each read again by a job of its own; how many jobs there are, by status.

    Times are Unix seconds; `finished_at` is None while a job waits or runs.
    """

    id: str
    collection_id: str
    jobs: Mapping[JobStatus, int]
    created_at: float
    finished_at: float | None

    @property
    def status(self) -> JobStatus:
        """Running while any job is open; then failed or cancelled where any is, else done."""
        if self.finished_at is None:
            return JobStatus.RUNNING
        return next((bad for bad in (JobStatus.FAILED, JobStatus.CANCELLED) if self.jobs.get(bad)), JobStatus.DONE)


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion removed."""

    chunks: int
    vectors: int


class Operation(StrEnum):
    """What a ledger row pays for."""

    CHAT = "chat"
    EMBED_QUERY = "embed_query"
    EMBED_DOC = "embed_doc"
    RERANK = "rerank"
    REWRITE = "rewrite"
    JUDGE = "judge"

    @property
    def generates(self) -> bool:
        """Whether it is the generator's work: a completion, whose prompt is accounted for by component."""
        return self in {Operation.CHAT, Operation.REWRITE}


class UsageStatus(StrEnum):
    """A ledger row is reserved before the model sees the request and becomes terminal once."""

    RESERVED = "reserved"
    COMPLETED = "completed"
    CLIENT_ABORT = "client_abort"
    SERVER_ABORT = "server_abort"
    ERROR = "error"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class Components:
    """Prompt tokens by what they are for; their sum is the prompt, by construction."""

    template: int = 0
    system: int = 0
    history: int = 0
    question: int = 0
    context: int = 0

    @property
    def total(self) -> int:
        """Tokens of the whole prompt."""
        return self.template + self.system + self.history + self.question + self.context


@dataclass(frozen=True, slots=True)
class DocumentShare:
    """Context tokens one document contributed to a prompt."""

    document_id: str
    chunks: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A ledger row before the model call. For embeddings, `input_tokens` counts and `components` stays empty.

    `collection_ids` are those the call is for, as far as the request named them.
    """

    event_id: str
    request_id: str
    operation: Operation
    principal: Principal
    endpoint: str
    model: str
    tokenizer_revision: str
    input_tokens: int
    max_output_tokens: int = 0
    components: Components = field(default_factory=Components)
    documents: tuple[DocumentShare, ...] = ()
    collection_ids: tuple[str, ...] = ()

    @property
    def project_id(self) -> str:
        """What OpenAI's reports call a project: the one collection the call is for, empty for none or several."""
        return self.collection_ids[0] if len(self.collection_ids) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What a model call really spent. `input_tokens` None keeps the reserved count."""

    status: UsageStatus
    input_tokens: int | None = None
    cached_tokens: int = 0
    output_tokens: int = 0
    delivered_tokens: int = 0
    first_token_ms: float | None = None
    total_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The server that a command talks to, by URL and key; without a URL, the local data directory.

    It lies here and not in `app.client` because `footnote --help` must not import an HTTP client.
    """

    url: str | None
    key: str | None
