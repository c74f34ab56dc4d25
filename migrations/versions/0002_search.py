"""Full-text indexes over chunks, kept in the chunks' own transaction."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TOKENIZERS = {"chunk_fts": "porter unicode61 remove_diacritics 2", "chunk_trigram": "trigram"}


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for table, tokenizer in _TOKENIZERS.items():
            _create_fts5(table, tokenizer)
    else:
        op.execute(
            "ALTER TABLE chunk ADD COLUMN search_vector tsvector "
            "GENERATED ALWAYS AS (to_tsvector('simple'::regconfig, heading || ' ' || text)) STORED"
        )
        op.execute("CREATE INDEX ix_chunk_search_vector ON chunk USING gin (search_vector)")


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for table in _TOKENIZERS:
            for event in ("insert", "delete", "update"):
                op.execute(f"DROP TRIGGER {table}_{event}")
            op.execute(f"DROP TABLE {table}")
    else:
        op.execute("DROP INDEX ix_chunk_search_vector")
        op.execute("ALTER TABLE chunk DROP COLUMN search_vector")


def _create_fts5(table: str, tokenizer: str) -> None:
    """An index that reads its text from `chunk`, so triggers must tell it what a row said before."""
    op.execute(
        f"CREATE VIRTUAL TABLE {table} USING fts5("
        f"text, heading, content='chunk', content_rowid='key', tokenize='{tokenizer}')"
    )
    add = f"INSERT INTO {table} (rowid, text, heading) VALUES (new.key, new.text, new.heading);"  # noqa: S608 - our names
    forget = (
        f"INSERT INTO {table} ({table}, rowid, text, heading) "  # noqa: S608 - our names
        "VALUES ('delete', old.key, old.text, old.heading);"
    )
    op.execute(f"CREATE TRIGGER {table}_insert AFTER INSERT ON chunk BEGIN {add} END")
    op.execute(f"CREATE TRIGGER {table}_delete AFTER DELETE ON chunk BEGIN {forget} END")
    op.execute(f"CREATE TRIGGER {table}_update AFTER UPDATE ON chunk BEGIN {forget} {add} END")
    op.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")  # noqa: S608 - our names
