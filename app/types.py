"""Value types that packages of `app` share; it imports `retrieval.types` alone. All times are Unix seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from retrieval.types import Metadata

DEFAULT_TENANT = "default"
"""The first tenant of every installation; its administrators without a collection limit operate the installation."""

OPENID = "openid"  # the key id of all users that an OpenID provider signed in: they have no key


class Role(StrEnum):
    """Permission level of a key, from the highest to the lowest: administer, write documents, or only read and ask."""

    ADMIN = "admin"
    MEMBER = "member"
    READER = "reader"

    def includes(self, required: "Role") -> bool:
        """Whether this role has all permissions of `required`."""
        return (ranked := list(Role)).index(self) <= ranked.index(required)


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated caller. `collections` are those the key is limited to; None is no limit."""

    tenant_id: str
    user_id: str
    key_id: str
    role: Role
    collections: tuple[str, ...] | None = None

    @property
    def caller(self) -> str:
        """The name under which limits count it: the key, or the user where a provider signed them in without one."""
        return self.key_id if self.key_id != OPENID else f"{OPENID}/{self.user_id}"

    @property
    def is_operator(self) -> bool:
        """Whether the caller administers the whole installation: the first tenant, without a collection limit."""
        return self.role is Role.ADMIN and self.tenant_id == DEFAULT_TENANT and self.collections is None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key without its secret, of which only the prefix and the SHA-256 are stored.

    `previous_…` describe the secret before the last rotation, which stays valid beside the new one until it expires;
    None where the key was never rotated. `user_name` is its user's display name, empty without one; `last_used_at` is
    exact to the minute.
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
    user_name: str = ""
    last_used_at: float | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """A named group of a tenant's documents, and how models are to word answers from it alone."""

    id: str
    tenant_id: str
    name: str
    metadata: Metadata
    created_at: float
    documents: int
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A sequence of questions and answers of one user.

    `key_id` is set where the key that created it is limited to collections; then no other key may add to it.
    A `shared` conversation may be read by the whole tenant. A `pinned` one is first in the list; `folder` groups it.
    `unanswered` are its questions that are being answered or were interrupted. `user_name` is the user's display name,
    empty without one.
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
    user_name: str = ""
    pinned: bool = False
    folder: str | None = None
    unanswered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question and its answer.

    `standalone` is the question rewritten to be understood without earlier turns; None where no rewrite was needed.
    `citations` are the answer's footnotes, and `making` records how it was made
    (`app.answering.conversations.answer_record`), both in JSON types. Turns written by versions that did not record it
    have no `making`.
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
    """A stored turn; `ordinal` is its place in the conversation, from 1."""

    ordinal: int
    created_at: float


class DocumentStatus(StrEnum):
    """State of a document's newest version: waiting, in a stage of ingestion, searchable, failed, or being deleted."""

    QUEUED = "queued"
    EXTRACTING = "extracting"
    CHUNKING = "chunking"
    EMBEDDING = "embedding"
    INDEXED = "indexed"
    FAILED = "failed"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True)
class NewDocument:
    """An upload. `original` is the name under which the store has its bytes, or will have them."""

    id: str
    original: str
    tenant_id: str
    collection_id: str
    filename: str
    bytes: int
    sha256: str
    external_id: str | None
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Document:
    """A document. `version` is the newest one, `live_version` the one that is searched (None: none yet).

    `done` and `total` count units of the current stage. Pages, chunks, tokens and embedding fields describe the live
    version, `error_…` the newest attempt. `next_attempt_at` is set while a failed job waits for its retry.
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
    """One version of a document. Before it is indexed, its counts are 0 and `indexed_at` is None."""

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
    """State of an ingestion job."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Job:
    """One ingestion of one document version.

    `next_attempt_at` is set while a failed job waits for its retry; `error_…` describe the failure.
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
    """The re-ingestion of all documents of a collection, by one job each; `jobs` counts them by status.

    `finished_at` is None while a job waits or runs.
    """

    id: str
    collection_id: str
    jobs: Mapping[JobStatus, int]
    created_at: float
    finished_at: float | None

    @property
    def status(self) -> JobStatus:
        """Running while any job is open; then failed or cancelled if any job is, else done."""
        if self.finished_at is None:
            return JobStatus.RUNNING
        return next((bad for bad in (JobStatus.FAILED, JobStatus.CANCELLED) if self.jobs.get(bad)), JobStatus.DONE)


@dataclass(frozen=True, slots=True)
class Deleted:
    """Numbers of chunks and vectors that a deletion removed."""

    chunks: int
    vectors: int


class Operation(StrEnum):
    """The kind of model call that a ledger row counts."""

    CHAT = "chat"
    EMBED_QUERY = "embed_query"
    EMBED_DOC = "embed_doc"
    RERANK = "rerank"
    REWRITE = "rewrite"
    JUDGE = "judge"

    @property
    def generates(self) -> bool:
        """Whether the generator runs it; its prompt tokens are then counted by component."""
        return self in {Operation.CHAT, Operation.REWRITE}


class UsageStatus(StrEnum):
    """State of a ledger row: reserved before the model call, then set once to one of the final states."""

    RESERVED = "reserved"
    COMPLETED = "completed"
    CLIENT_ABORT = "client_abort"
    SERVER_ABORT = "server_abort"
    ERROR = "error"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class Components:
    """Prompt tokens by component; their sum is the length of the prompt."""

    template: int = 0
    system: int = 0
    history: int = 0
    question: int = 0
    context: int = 0

    @property
    def total(self) -> int:
        """Tokens of the whole prompt."""
        return self.template + self.system + self.history + self.question + self.context

    def plus(self, other: "Components") -> "Components":
        """The sum of both, by component."""
        return Components(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True)
class DocumentShare:
    """The passages and tokens of one document that a model call reads."""

    document_id: str
    chunks: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A ledger row before the model call. For embeddings, `components` stays empty.

    `collection_ids` are the collections the request named.
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
        """The `project_id` of OpenAI's usage reports: the one collection the call is for, empty for none or several."""
        return self.collection_ids[0] if len(self.collection_ids) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The actual usage of a model call. `input_tokens` None keeps the reserved count."""

    status: UsageStatus
    input_tokens: int | None = None
    cached_tokens: int = 0
    output_tokens: int = 0
    delivered_tokens: int = 0
    first_token_ms: float | None = None
    total_ms: float | None = None

    @property
    def counts(self) -> Mapping[str, int]:
        """The tokens that the end of the call counted, by the ledger's names."""
        return {
            "input_cached_tokens": self.cached_tokens,
            "output_tokens": self.output_tokens,
            "output_delivered_tokens": self.delivered_tokens,
        }


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """The server that a command talks to, by URL and key; without a URL, the local data directory.

    Defined here and not in `app.client`, because `footnote --help` must not import an HTTP client.
    """

    url: str | None
    key: str | None
