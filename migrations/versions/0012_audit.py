"""What administrators did."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# table, event, what the database says
_GUARDS = (
    ("audit_event", "UPDATE", "audit_event is immutable"),
    ("audit_event", "DELETE", "audit_event rows are never deleted"),
)


def upgrade() -> None:
    op.create_table(
        "audit_event",
        sa.Column("audit_id", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("api_key_id", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.PrimaryKeyConstraint("audit_id", name="pk_audit_event"),
    )
    op.create_index("ix_audit_event_tenant_id_at_audit_id", "audit_event", ["tenant_id", "at", "audit_id"])
    _guard()


def downgrade() -> None:
    op.drop_table("audit_event")


def _guard() -> None:
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    for table, event, message in _GUARDS:
        name = f"{table}_no_{event.lower()}"
        if on_sqlite:
            body = f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            op.execute(f"CREATE TRIGGER {name} BEFORE {event} ON {table} {body}")
        else:
            body = f"EXECUTE FUNCTION ledger_refuse('{message}')"
            op.execute(f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW {body}")
