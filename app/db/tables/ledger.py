"""The ledger's tables. Times are Unix microseconds, money is integer pico-units (1e-12) of `currency`.

No foreign key leaves the ledger: deleting a user or a document never touches it. Triggers (in the
migrations) forbid changing a settled row and deleting any.
"""

import sqlalchemy as sa

from app.db.tables.documents import metadata
from app.db.tables.usage_columns import PARTS, Measures


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0"))


def _label(name: str) -> sa.Column[str]:
    """A text column for grouping; empty instead of NULL, so that sums by group need no NULL."""
    return sa.Column(name, sa.Text, nullable=False, server_default=sa.text("''"))


# One per process that shares the database with others. What a process works on carries its id: jobs, calls, requests
# with an idempotency key, uploads. A process that is alone has no row.
process = sa.Table(
    "process",
    metadata,
    sa.Column("boot_id", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("started_at", sa.Double, nullable=False),
    sa.Column("beat", sa.BigInteger, nullable=False),  # rises while the process lives
    sa.Column("ended_at", sa.Double),  # when it ended, or was buried
)

# One for each answer that another process is asked to cancel; it deletes the row and cancels the answer.
cancel_request = sa.Table(
    "cancel_request",
    metadata,
    sa.Column("request_id", sa.Text, primary_key=True),
    sa.Column("boot_id", sa.Text, nullable=False, index=True),  # the process where the request runs
)

# One per accepted HTTP request or ingestion job.
api_request = sa.Table(
    "api_request",
    metadata,
    sa.Column("request_id", sa.Text, primary_key=True),
    _label("idem_key"),
    _label("idem_fp"),
    sa.Column("tenant_id", sa.Text, nullable=False),
    _label("project_id"),
    _label("user_id"),
    _label("api_key_id"),
    sa.Column("endpoint", sa.Text, nullable=False),
    sa.Column("accepted_at", sa.BigInteger, nullable=False),
    sa.Column("boot_id", sa.Text, nullable=False),
    sa.Index(
        "ux_api_request_idem",
        "api_key_id",
        "endpoint",
        "idem_key",
        unique=True,
        sqlite_where=sa.text("idem_key <> ''"),
        postgresql_where=sa.text("idem_key <> ''"),
    ),
    sa.Index(None, "tenant_id", "accepted_at"),
)

# One per model call. `input_tokens` includes the cached ones, as OpenAI counts.
usage_event = sa.Table(
    "usage_event",
    metadata,
    sa.Column("event_id", sa.Text, primary_key=True),
    sa.Column("request_id", sa.Text, sa.ForeignKey("api_request.request_id"), nullable=False, index=True),
    sa.Column("operation", sa.Text, nullable=False),
    sa.Column("tenant_id", sa.Text, nullable=False),
    _label("project_id"),
    _label("user_id"),
    _label("api_key_id"),
    sa.Column("boot_id", sa.Text, nullable=False),  # the process that reserved: finds orphans after a crash
    sa.Column("model_id", sa.Text, nullable=False),
    sa.Column("tokenizer_rev", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("count_quality", sa.Text, nullable=False, server_default="none"),
    *map(_count, Measures._fields),
    _count("output_reasoning_tokens"),
    _count("max_output_tokens"),  # as reserved
    sa.Column("currency", sa.Text, nullable=False, server_default="usd"),
    sa.Column("cost_pico", sa.BigInteger),  # NULL is unpriced, never 0 by default
    sa.Column("price_ids", sa.Text, nullable=False, server_default="[]"),
    sa.Column("accepted_at", sa.BigInteger, nullable=False),
    sa.Column("first_token_at", sa.BigInteger),
    sa.Column("settled_at", sa.BigInteger),
    sa.Column("ttft_us", sa.BigInteger),
    sa.Column("total_us", sa.BigInteger),
    sa.Column("gpu_us", sa.BigInteger),
    sa.CheckConstraint(
        "operation IN ('chat', 'rewrite', 'embed_query', 'embed_doc', 'rerank', 'judge')", name="operation"
    ),
    sa.CheckConstraint(
        "status IN ('reserved', 'completed', 'client_abort', 'server_abort', 'error', 'recovered', 'rejected')",
        name="status",
    ),
    sa.CheckConstraint("count_quality IN ('none', 'exact', 'checkpoint')", name="count_quality"),
    sa.CheckConstraint(
        f"operation <> 'chat' OR input_tokens = {' + '.join(PARTS)}",
        name="components",
    ),
    sa.CheckConstraint(
        " AND ".join(f"{part} >= 0" for part in PARTS),
        name="no_negative_component",
    ),
    sa.CheckConstraint("input_cached_tokens BETWEEN 0 AND input_tokens", name="cached"),
    sa.CheckConstraint("output_reasoning_tokens BETWEEN 0 AND output_tokens", name="reasoning"),
    sa.CheckConstraint("output_delivered_tokens BETWEEN 0 AND output_tokens", name="delivered"),
    sa.CheckConstraint("output_tokens <= max_output_tokens", name="max_output"),
    sa.CheckConstraint("(status = 'reserved') = (settled_at IS NULL)", name="settled"),
    sa.Index(None, "settled_at", "event_id"),
    sa.Index(None, "tenant_id", "settled_at"),
    sa.Index(None, "api_key_id", "settled_at"),
    sa.Index(
        "ix_usage_event_open",
        "accepted_at",
        sqlite_where=sa.text("status = 'reserved'"),
        postgresql_where=sa.text("status = 'reserved'"),
    ),
)

# How the context tokens of a call split by document.
usage_event_document = sa.Table(
    "usage_event_document",
    metadata,
    sa.Column("event_id", sa.Text, sa.ForeignKey("usage_event.event_id"), primary_key=True),
    sa.Column("document_id", sa.Text, primary_key=True, index=True),
    sa.Column("chunks", sa.BigInteger, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    sa.CheckConstraint("chunks >= 0", name="chunks"),
    sa.CheckConstraint("tokens >= 0", name="tokens"),
)

# Documents that an answer cites, written when the answer is complete, not at the call's settlement. Like the ledger it
# outlives the documents.
answer_citation = sa.Table(
    "answer_citation",
    metadata,
    sa.Column("request_id", sa.Text, primary_key=True),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("num_citations", sa.BigInteger, nullable=False),
    sa.Column("cited_at", sa.BigInteger, nullable=False),  # Unix microseconds
    sa.CheckConstraint("num_citations > 0", name="num_citations"),
    sa.Index(None, "tenant_id", "cited_at"),
    sa.Index(None, "tenant_id", "document_id", "cited_at"),
)

# How each question ended, written when its answer is complete; requests from before revision 0026 have no row. It holds
# no text, and outlives conversations as the ledger does.
answer_outcome = sa.Table(
    "answer_outcome",
    metadata,
    sa.Column("request_id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    _label("user_id"),
    sa.Column("endpoint", sa.Text, nullable=False),
    sa.Column("result", sa.Text, nullable=False),
    _label("reason"),
    sa.Column("confirmed", sa.Boolean),  # NULL: nothing was to be cited
    sa.Column("total_us", sa.BigInteger),
    sa.Column("ended_at", sa.BigInteger, nullable=False),  # Unix microseconds
    sa.CheckConstraint("result IN ('answered', 'unsure', 'refused', 'failed', 'cancelled')", name="result"),
    sa.CheckConstraint("total_us >= 0", name="total_us"),
    sa.Index(None, "tenant_id", "ended_at"),
    sa.Index(None, "tenant_id", "user_id", "ended_at"),
)

# The weekly summaries of a tenant, one row for each week and receiver: `webhook`, or `mail:` and an address.
weekly_summary = sa.Table(
    "weekly_summary",
    metadata,
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("week_start", sa.BigInteger, primary_key=True),  # Unix seconds
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("delivery", sa.Text, nullable=False, server_default=sa.text("'waiting'")),
    sa.Column("attempts", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("next_attempt_at", sa.BigInteger, nullable=False),
    sa.Column("delivered_at", sa.BigInteger),
    sa.Column("claimed_by", sa.Text),  # the process, of several, that delivers it
    sa.CheckConstraint("delivery IN ('waiting', 'delivered', 'failed')", name="delivery"),
)
