"""A call that read nothing read nothing of any document: its shares may become 0, and nothing else."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TRIGGER = "usage_event_document_no_update"
_MESSAGE = "usage_event_document is immutable"
_REFUSED = (
    "NEW.tokens <> 0 OR NEW.event_id <> OLD.event_id OR NEW.document_id <> OLD.document_id OR NEW.chunks <> OLD.chunks "
    "OR NOT EXISTS (SELECT 1 FROM usage_event WHERE event_id = OLD.event_id "
    "AND status <> 'reserved' AND input_tokens = 0)"
)


def upgrade() -> None:
    _drop()
    if _on_sqlite():
        _on_update(f"WHEN ({_REFUSED}) BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END")
        return
    # PostgreSQL's WHEN may not look into another table, so the function does.
    op.execute(
        "CREATE FUNCTION ledger_refuse_share() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF {_REFUSED} THEN RAISE EXCEPTION '{_MESSAGE}' USING ERRCODE = 'integrity_constraint_violation'; "
        "END IF; RETURN NEW; END $$"
    )
    _on_update("FOR EACH ROW EXECUTE FUNCTION ledger_refuse_share()")


def downgrade() -> None:
    _drop()
    if _on_sqlite():
        _on_update(f"BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END")
        return
    op.execute("DROP FUNCTION ledger_refuse_share()")
    _on_update(f"FOR EACH ROW EXECUTE FUNCTION ledger_refuse('{_MESSAGE}')")


def _on_sqlite() -> bool:
    return bool(op.get_bind().dialect.name == "sqlite")


def _drop() -> None:
    op.execute(f"DROP TRIGGER {_TRIGGER}" if _on_sqlite() else f"DROP TRIGGER {_TRIGGER} ON usage_event_document")


def _on_update(what: str) -> None:
    op.execute(f"CREATE TRIGGER {_TRIGGER} BEFORE UPDATE ON usage_event_document {what}")
