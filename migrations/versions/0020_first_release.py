"""The first release: all tables, indexes, triggers, functions and full-text indexes, as frozen SQL of each database.

The SQL is `migrations/first_release/`. The migrations before were folded into it, and it keeps the id of the last.
"""

from alembic import op

from migrations.first_release import drop, make

revision = "0020"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    make(op.get_bind())


def downgrade() -> None:
    drop(op.get_bind())
