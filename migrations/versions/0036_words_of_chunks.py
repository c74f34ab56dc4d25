"""PostgreSQL: the words of each chunk as numbers in a table of their own, instead of a tsvector beside its text.

The table is empty here: after the migrations it is filled from the chunks, some hundred a transaction.
"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        return
    op.create_table(
        "chunk_words",
        sa.Column("key", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("collection_id", sa.Text(), nullable=False),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("parts", sa.Integer(), nullable=False),
        sa.Column("numbers", sa.ARRAY(sa.BigInteger()), nullable=False),
        sa.ForeignKeyConstraint(["key"], ["chunk.key"], name="fk_chunk_words_key", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", name="pk_chunk_words"),
    )
    op.create_index(
        "ix_chunk_words_numbers",
        "chunk_words",
        ["numbers"],
        postgresql_using="gin",
        postgresql_with={"fastupdate": "off"},  # else each search reads a list of what was inserted last
    )
    op.create_index(
        "ix_chunk_words_tenant_id_collection_id",
        "chunk_words",
        ["tenant_id", "collection_id"],
        postgresql_include=["words", "parts"],
    )
    op.execute("DROP INDEX ix_chunk_search_vector")
    op.execute("ALTER TABLE chunk DROP COLUMN search_vector")


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        return
    op.drop_table("chunk_words")
    op.execute(
        "ALTER TABLE chunk ADD COLUMN search_vector tsvector "
        "GENERATED ALWAYS AS (to_tsvector('simple'::regconfig, (heading || ' '::text) || text)) STORED"
    )
    op.execute("CREATE INDEX ix_chunk_search_vector ON chunk USING gin (search_vector)")
    # the columns in the order of the first release, with which a database is compared
    op.execute("ALTER TABLE chunk RENAME COLUMN table_header TO header")
    op.execute("ALTER TABLE chunk ADD COLUMN table_header text DEFAULT ''::text NOT NULL")
    op.execute("UPDATE chunk SET table_header = header WHERE header <> ''")
    op.execute("ALTER TABLE chunk DROP COLUMN header")
