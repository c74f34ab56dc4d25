"""The tables of documents, access and conversations. Those of other subjects beside this are on the same metadata.

Times are Unix seconds. Ids are text we make. The full-text indexes over `chunk` differ by database
and live in the migrations alone.
"""

import sqlalchemy as sa

from app.db.dialect import json_column
from app.types import Role

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

ROLE_CHECK = f"role IN ({', '.join(repr(role.value) for role in Role)})"
"""The SQL condition that a column `role` holds a role."""

_Queryable = json_column()
_Json = sa.JSON(none_as_null=True)

tenant = sa.Table(
    "tenant",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("name", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("disabled_at", sa.Double),  # from then on its users are refused
)

app_user = sa.Table(
    "app_user",
    metadata,
    sa.Column("tenant_id", sa.Text, sa.ForeignKey("tenant.id"), primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("name", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("disabled_at", sa.Double),
    sa.Index(None, "tenant_id", "created_at", "id"),
)

api_key = sa.Table(
    "api_key",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("collections", _Json),  # NULL: no limit
    sa.Column("prefix", sa.Text, nullable=False),
    sa.Column("secret_sha256", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double),
    sa.Column("revoked_at", sa.Double),
    sa.Column("rotated_at", sa.Double),
    # the secret before the last rotation, which works until it expires
    sa.Column("previous_prefix", sa.Text),
    sa.Column("previous_sha256", sa.Text),
    sa.Column("previous_expires_at", sa.Double),
    sa.Column("last_used_at", sa.Double),  # to the minute
    sa.ForeignKeyConstraint(["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"]),
    sa.CheckConstraint(ROLE_CHECK, name="role"),
    sa.Index(None, "tenant_id", "created_at"),
    sa.Index("uq_api_key_previous_sha256", "previous_sha256", unique=True),
)

collection = sa.Table(
    "collection",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, sa.ForeignKey("tenant.id"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("metadata", _Queryable, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("instructions", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.UniqueConstraint("tenant_id", "name"),
)

document = sa.Table(
    "document",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, sa.ForeignKey("tenant.id"), nullable=False),
    sa.Column("collection_id", sa.Text, sa.ForeignKey("collection.id"), nullable=False),
    sa.Column("external_id", sa.Text),
    # SHA-256 of the newest version where that identifies the document, so that the unique index
    # accepts one of simultaneous uploads of the same bytes; otherwise NULL
    sa.Column("content_key", sa.Text),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("live_version", sa.Integer),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("done", sa.Integer, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("job_id", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Column("metadata", _Queryable, nullable=False),
    sa.UniqueConstraint("tenant_id", "collection_id", "external_id"),
    sa.UniqueConstraint("tenant_id", "collection_id", "content_key"),
    sa.CheckConstraint("live_version <= version", name="live_version"),
    sa.CheckConstraint(
        "status IN ('queued', 'extracting', 'chunking', 'embedding', 'indexed', 'failed', 'deleting')", name="status"
    ),
    sa.Index(None, "tenant_id", "created_at", "id"),
    sa.Index(None, "collection_id"),
    sa.Index(None, "job_id"),
)

# the long columns come last: SQLite then reads the short ones without touching their overflow pages
document_version = sa.Table(
    "document_version",
    metadata,
    sa.Column("document_id", sa.Text, sa.ForeignKey("document.id"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("filename", sa.Text, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False, index=True),
    sa.Column("media_type", sa.Text),
    sa.Column("page_count", sa.Integer, nullable=False),
    sa.Column("first_key", sa.BigInteger),  # its chunks' keys are the `chunk_count` from here on
    sa.Column("chunk_count", sa.Integer, nullable=False),
    sa.Column("token_count", sa.Integer, nullable=False),
    sa.Column("generation", sa.Integer, sa.ForeignKey("index_generation.id")),
    sa.Column("embedding_tokens", sa.BigInteger, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("indexed_at", sa.Double),
    sa.Column("title", sa.Text),
    sa.Column("text", sa.Text),  # NULL until indexed
    sa.Column("pages", _Json),  # [[number, start_char, end_char], …]
    sa.Column("blocks", _Json),  # [[kind, start_char, end_char, page, [heading, …], [cell, …]?], …]
    sa.Column("suggestions", _Json),  # [[question, start_char, end_char, answer], …]; NULL until they are made
    # the name of its original in the store; versions of the same bytes may share it. Behind the long columns, so read
    # it alone, for one version at a time
    sa.Column("object", sa.Text, nullable=False, server_default=sa.text("''"), index=True),
)

chunk = sa.Table(
    "chunk",
    metadata,
    sa.Column("key", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=False),
    sa.Column("document_id", sa.Text, sa.ForeignKey("document.id"), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("start_char", sa.Integer, nullable=False),
    sa.Column("end_char", sa.Integer, nullable=False),
    sa.Column("page_start", sa.Integer),
    sa.Column("page_end", sa.Integer),
    sa.Column("token_count", sa.Integer, nullable=False),
    sa.Column("heading_path", _Json, nullable=False),
    sa.Column("heading", sa.Text, nullable=False),  # the path as one searchable line
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("table_header", sa.Text, nullable=False, server_default=sa.text("''")),  # of the table it begins inside
    sa.UniqueConstraint("document_id", "version", "ordinal"),
)

chunk_vector = sa.Table(
    "chunk_vector",
    metadata,
    sa.Column("key", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.ForeignKey("chunk.key"), primary_key=True),
    sa.Column("generation", sa.Integer, sa.ForeignKey("index_generation.id"), primary_key=True),
    sa.Column("vector", sa.LargeBinary, nullable=False),  # little-endian float16, `dim` of them
)

# Chunk keys are handed out from here and never twice: a vector index may hold a deleted key for a moment, and what was
# written to one before a commit that failed has keys that no chunk gets.
key_counter = sa.Table(
    "key_counter",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("next_key", sa.BigInteger, nullable=False),
)

index_generation = sa.Table(
    "index_generation",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("revision", sa.Text, nullable=False),
    sa.Column("dim", sa.Integer, nullable=False),
    sa.Column("metric", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("source", sa.Text, nullable=False, server_default=sa.text("''")),  # the setting that named the embedder
    sa.Column("activated_at", sa.Double),
    sa.Column("replaced_at", sa.Double),
    sa.Column("rejected_at", sa.Double),  # an administrator went back from it
    sa.Column("purged_at", sa.Double),  # from then on it has no vectors
    sa.CheckConstraint("status IN ('building', 'ready', 'active', 'previous', 'retired')", name="status"),
    sa.CheckConstraint("dim > 0", name="dim"),
    *(
        sa.Index(
            f"uq_index_generation_{status}",
            "status",
            unique=True,
            sqlite_where=sa.text(f"status = '{status}'"),
            postgresql_where=sa.text(f"status = '{status}'"),
        )
        for status in ("active", "building")
    ),
)

# No foreign key to the document: a job outlives it, to show that it was cancelled.
job = sa.Table(
    "job",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("document_id", sa.Text, nullable=False, index=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("replace", sa.Boolean, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("key_id", sa.Text, nullable=False),
    sa.Column("crashes", sa.Integer, nullable=False, server_default=sa.text("0")),  # processes that died running it
    sa.Column("kept_since_crash", sa.Boolean, nullable=False, server_default=sa.false()),  # a block of its embeddings
    sa.Column("alone", sa.Boolean, nullable=False, server_default=sa.false()),  # since a crash it is claimed by itself
    sa.Column("boot_id", sa.Text),  # the process that runs it
    sa.Column(
        "claim", sa.Integer, nullable=False, server_default=sa.text("0")
    ),  # number of the last one; it only rises
    sa.Column("begun", sa.Boolean, nullable=False, server_default=sa.false()),  # by that claim; others may begin later
    sa.Column("first_key", sa.BigInteger),  # of the keys that claim took for its chunks; NULL until it does
    sa.Column("error_code", sa.Text),
    sa.Column("error_detail", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("next_attempt_at", sa.Double, nullable=False, server_default=sa.text("0")),  # not to be claimed before
    sa.Column("started_at", sa.Double),
    sa.Column("finished_at", sa.Double),
    sa.Column("reindex_id", sa.Text, index=True),  # the reindexing it is part of
    sa.CheckConstraint("status IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="status"),
    sa.Index(None, "status", "tenant_id", "user_id", "next_attempt_at", "id"),
    sa.Index(None, "tenant_id", "user_id", "started_at"),
    sa.Index(None, "tenant_id", "created_at", "id"),
)

# The password of a protected file until its job ends, sealed by those of processes that share the database.
job_secret = sa.Table(
    "job_secret",
    metadata,
    sa.Column("job_id", sa.Text, primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("kept_at", sa.Double, nullable=False),
)

# All documents of a collection, each read again by a job of its own.
reindexing = sa.Table(
    "reindexing",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("collection_id", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
)

# Gone when the job ends: until then the embeddings a next attempt need not make again.
embedding_checkpoint = sa.Table(
    "embedding_checkpoint",
    metadata,
    sa.Column("job_id", sa.Text, sa.ForeignKey("job.id"), primary_key=True),
    sa.Column("first_ordinal", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("passages", sa.Integer, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),  # SHA-256 of the texts
    sa.Column("event_id", sa.Text, nullable=False),  # the ledger row that pays for it
    sa.Column("tokens", sa.BigInteger, nullable=False),
    sa.Column("vectors", sa.LargeBinary, nullable=False),  # little-endian float32, a row each
)

conversation = sa.Table(
    "conversation",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("key_id", sa.Text),  # set where that key is limited to collections: no other key adds turns
    sa.Column("title", sa.Text),  # NULL until it is given or the first turn gives it
    sa.Column("metadata", _Queryable, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Column("shared", sa.Boolean, nullable=False, server_default=sa.false()),  # the whole tenant may read it
    sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()),  # first in the list
    sa.Column("folder", sa.Text),  # NULL: in none
    sa.Column("listed", sa.Boolean, nullable=False, server_default=sa.true()),  # false: of stored responses alone
    sa.ForeignKeyConstraint(["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"]),
    sa.Index(None, "tenant_id", "user_id"),
    sa.Index(None, "tenant_id", "pinned", "created_at", "id"),
)

conversation_turn = sa.Table(
    "conversation_turn",
    metadata,
    sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversation.id"), primary_key=True),
    sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("request_id", sa.Text, nullable=False, unique=True),  # one turn per answer, even if stored twice
    sa.Column("answered", sa.Boolean, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("standalone", sa.Text),  # NULL where the question was not rewritten
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("citations", _Json, nullable=False),
    sa.Column("making", _Json),  # NULL in turns from before revision 0018
    sa.Column("response", sa.Text),  # JSON in ASCII (app/db/stored_responses.py); NULL where none is stored
)

# Neither an API key's secret nor a client's own key can be read from `id` and `fingerprint` (api/gate/idempotency.py).
idempotent_request = sa.Table(
    "idempotent_request",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, nullable=False, server_default=sa.text("''")),  # '' before revision 0021
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("boot_id", sa.Text, nullable=False),  # the process that works on it
    sa.Column("created_at", sa.Double, nullable=False, index=True),
    sa.Column("status", sa.Integer),  # HTTP status of the answer; NULL while there is none
    sa.Column("media_type", sa.Text),
    sa.Column("body", sa.LargeBinary),  # NULL where the answer holds a secret, or is forgotten
    # the tenant deleted something since the claim: the answer may hold its text, and is not kept
    sa.Column("forgotten", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("ix_idempotent_request_tenant_id", "tenant_id", "forgotten"),
)

# An upload that is no document yet; it becomes the document of the same id.
unattached_file = sa.Table(
    "unattached_file",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, sa.ForeignKey("tenant.id"), nullable=False),
    sa.Column("key_id", sa.Text, nullable=False),  # a key limited to collections sees only its own
    sa.Column("filename", sa.Text, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("purpose", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("object", sa.Text, nullable=False, server_default=sa.text("''"), index=True),  # as of a version
    sa.Index(None, "tenant_id", "id"),
)

# An original that is being put into the store, or deleted from it: gone when a row names it, or it is deleted.
upload = sa.Table(
    "upload",
    metadata,
    sa.Column("object", sa.Text, primary_key=True),
    sa.Column("boot_id", sa.Text),  # the process that puts it; NULL: to be deleted
    sa.Column("begun_at", sa.Double, nullable=False),
)

file_batch = sa.Table(
    "file_batch",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("collection_id", sa.Text, sa.ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("cancelled_at", sa.Double),
    sa.Column("file_ids", sa.JSON(none_as_null=True), nullable=False),
    sa.Index(None, "collection_id"),
)
