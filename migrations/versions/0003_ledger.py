"""The ledger and its guards."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


# table, event, condition, what the database says
_GUARDS = (
    ("usage_event", "UPDATE", "OLD.status <> 'reserved'", "usage_event is immutable once settled"),
    ("usage_event", "DELETE", None, "usage_event rows are never deleted"),
    ("usage_event_document", "UPDATE", None, "usage_event_document is immutable"),
    ("usage_event_document", "DELETE", None, "usage_event_document rows are never deleted"),
    ("api_request", "UPDATE", None, "api_request is immutable"),
    ("api_request", "DELETE", None, "api_request rows are never deleted"),
)


def upgrade() -> None:
    op.create_table(
        "api_request",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("idem_key", sa.Text(), server_default="", nullable=False),
        sa.Column("idem_fp", sa.Text(), server_default="", nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), server_default="", nullable=False),
        sa.Column("user_id", sa.Text(), server_default="", nullable=False),
        sa.Column("api_key_id", sa.Text(), server_default="", nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("accepted_at", sa.BigInteger(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("request_id", name="pk_api_request"),
    )
    op.create_index(
        "ux_api_request_idem",
        "api_request",
        ["api_key_id", "endpoint", "idem_key"],
        unique=True,
        sqlite_where=sa.text("idem_key <> ''"),
        postgresql_where=sa.text("idem_key <> ''"),
    )
    op.create_table(
        "usage_event",
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), server_default="", nullable=False),
        sa.Column("user_id", sa.Text(), server_default="", nullable=False),
        sa.Column("api_key_id", sa.Text(), server_default="", nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("tokenizer_rev", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("count_quality", sa.Text(), server_default="none", nullable=False),
        sa.Column("tok_system", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tok_history", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tok_context", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tok_question", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tok_template", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("input_cached_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_reasoning_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_delivered_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("max_output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("currency", sa.Text(), server_default="usd", nullable=False),
        sa.Column("cost_pico", sa.BigInteger(), nullable=True),
        sa.Column("price_ids", sa.Text(), server_default="[]", nullable=False),
        sa.Column("accepted_at", sa.BigInteger(), nullable=False),
        sa.Column("first_token_at", sa.BigInteger(), nullable=True),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.Column("ttft_us", sa.BigInteger(), nullable=True),
        sa.Column("total_us", sa.BigInteger(), nullable=True),
        sa.Column("gpu_us", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(status = 'reserved') = (settled_at IS NULL)", name="ck_usage_event_settled"),
        sa.CheckConstraint("count_quality IN ('none', 'exact', 'checkpoint')", name="ck_usage_event_count_quality"),
        sa.CheckConstraint(
            "operation <> 'chat' OR "
            "input_tokens = tok_system + tok_history + tok_context + tok_question + tok_template",
            name="ck_usage_event_components",
        ),
        sa.CheckConstraint(
            "operation IN ('chat', 'rewrite', 'embed_query', 'embed_doc', 'rerank', 'judge')",
            name="ck_usage_event_operation",
        ),
        sa.CheckConstraint(
            "status IN ('reserved', 'completed', 'client_abort', 'server_abort', 'error', 'recovered', 'rejected')",
            name="ck_usage_event_status",
        ),
        sa.CheckConstraint("input_cached_tokens BETWEEN 0 AND input_tokens", name="ck_usage_event_cached"),
        sa.CheckConstraint("output_delivered_tokens BETWEEN 0 AND output_tokens", name="ck_usage_event_delivered"),
        sa.CheckConstraint("output_reasoning_tokens BETWEEN 0 AND output_tokens", name="ck_usage_event_reasoning"),
        sa.CheckConstraint("output_tokens <= max_output_tokens", name="ck_usage_event_max_output"),
        sa.CheckConstraint(
            "tok_system >= 0 AND tok_history >= 0 AND tok_context >= 0 AND tok_question >= 0 AND tok_template >= 0",
            name="ck_usage_event_no_negative_component",
        ),
        sa.ForeignKeyConstraint(["request_id"], ["api_request.request_id"], name="fk_usage_event_request_id"),
        sa.PrimaryKeyConstraint("event_id", name="pk_usage_event"),
    )
    op.create_index("ix_usage_event_api_key_id_settled_at", "usage_event", ["api_key_id", "settled_at"])
    op.create_index(
        "ix_usage_event_open",
        "usage_event",
        ["accepted_at"],
        sqlite_where=sa.text("status = 'reserved'"),
        postgresql_where=sa.text("status = 'reserved'"),
    )
    op.create_index("ix_usage_event_request_id", "usage_event", ["request_id"])
    op.create_index("ix_usage_event_settled_at_event_id", "usage_event", ["settled_at", "event_id"])
    op.create_index("ix_usage_event_tenant_id_settled_at", "usage_event", ["tenant_id", "settled_at"])
    op.create_table(
        "usage_event_document",
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("chunks", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("chunks >= 0", name="ck_usage_event_document_chunks"),
        sa.CheckConstraint("tokens >= 0", name="ck_usage_event_document_tokens"),
        sa.ForeignKeyConstraint(["event_id"], ["usage_event.event_id"], name="fk_usage_event_document_event_id"),
        sa.PrimaryKeyConstraint("event_id", "document_id", name="pk_usage_event_document"),
    )
    op.create_index("ix_usage_event_document_document_id", "usage_event_document", ["document_id"])
    _guard()


def downgrade() -> None:
    _unguard()
    op.drop_table("usage_event_document")
    op.drop_table("usage_event")
    op.drop_table("api_request")


def _guard() -> None:
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    if not on_sqlite:
        op.execute(
            "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$"
        )
    for table, event, condition, message in _GUARDS:
        name, when = f"{table}_no_{event.lower()}", f"WHEN ({condition})" if condition else ""
        if on_sqlite:
            body = f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            op.execute(f"CREATE TRIGGER {name} BEFORE {event} ON {table} {when} {body}")
        else:
            body = f"EXECUTE FUNCTION ledger_refuse('{message}')"
            op.execute(f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW {when} {body}")


def _unguard() -> None:
    for table, event, *_ in _GUARDS:
        name = f"{table}_no_{event.lower()}"
        op.execute(
            f"DROP TRIGGER {name}" if op.get_bind().dialect.name == "sqlite" else f"DROP TRIGGER {name} ON {table}"
        )
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION ledger_refuse()")
