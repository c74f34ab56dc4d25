"""A server may count fewer tokens than were planned: shares of a settled call may shrink until they sum to its context.

Nothing else of a share changes, and it never grows.
"""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_TRIGGER = "usage_event_document_no_update"
_MESSAGE = "usage_event_document is immutable"
_OTHER = "NEW.event_id <> OLD.event_id OR NEW.document_id <> OLD.document_id OR NEW.chunks <> OLD.chunks"
# ruff: noqa: S608 - the conditions hold no value from outside
_UNREAD = (
    f"NEW.tokens <> 0 OR {_OTHER} OR NOT EXISTS (SELECT 1 FROM usage_event WHERE event_id = OLD.event_id "
    "AND status <> 'reserved' AND input_tokens = 0)"
)
_GROWN_OR_OUTSIDE = (
    f"NEW.tokens > OLD.tokens OR {_OTHER} OR NOT EXISTS (SELECT 1 FROM usage_event WHERE event_id = OLD.event_id "
    "AND status <> 'reserved' AND (input_tokens = 0 OR (operation IN ('chat', 'rewrite') AND tok_context <= "
    "(SELECT SUM(tokens) FROM usage_event_document WHERE event_id = OLD.event_id) - OLD.tokens + NEW.tokens)))"
)


def upgrade() -> None:
    _refuse(_GROWN_OR_OUTSIDE)


def downgrade() -> None:
    _refuse(_UNREAD)


def _refuse(update: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"DROP TRIGGER {_TRIGGER}")
        op.execute(
            f"CREATE TRIGGER {_TRIGGER} BEFORE UPDATE ON usage_event_document "
            f"WHEN ({update}) BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END"
        )
        return
    op.execute(
        "CREATE OR REPLACE FUNCTION ledger_refuse_share() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF {update} THEN RAISE EXCEPTION '{_MESSAGE}' USING ERRCODE = 'integrity_constraint_violation'; "
        "END IF; RETURN NEW; END $$"
    )
