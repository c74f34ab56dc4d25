"""Tenants, keys, collections, documents, chunks and jobs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_QUERYABLE = sa.JSON().with_variant(JSONB(), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "tenant",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tenant"),
    )
    op.create_table(
        "app_user",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_app_user_tenant_id"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_app_user"),
    )
    op.create_table(
        "api_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("collections", sa.JSON(), nullable=True),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("secret_sha256", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.CheckConstraint("role IN ('admin', 'member', 'reader')", name="ck_api_key_role"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"], name="fk_api_key_tenant_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sa.UniqueConstraint("secret_sha256", name="uq_api_key_secret_sha256"),
    )
    op.create_index("ix_api_key_tenant_id_created_at", "api_key", ["tenant_id", "created_at"])
    op.create_table(
        "collection",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("metadata", _QUERYABLE, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_collection_tenant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_collection"),
        sa.UniqueConstraint("tenant_id", "name", name="uq_collection_tenant_id_name"),
    )
    op.create_table(
        "index_generation",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("dim", sa.Integer(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.CheckConstraint("status IN ('active', 'retired')", name="ck_index_generation_status"),
        sa.CheckConstraint("dim > 0", name="ck_index_generation_dim"),
        sa.PrimaryKeyConstraint("id", name="pk_index_generation"),
    )
    op.create_index(
        "uq_index_generation_active",
        "index_generation",
        ["status"],
        unique=True,
        sqlite_where=sa.text("status = 'active'"),
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_table(
        "document",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("collection_id", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("content_key", sa.Text(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("live_version", sa.Integer(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("metadata", _QUERYABLE, nullable=False),
        sa.CheckConstraint(
            "status IN ('queued', 'extracting', 'chunking', 'embedding', 'indexed', 'failed', 'deleting')",
            name="ck_document_status",
        ),
        sa.CheckConstraint("live_version <= version", name="ck_document_live_version"),
        sa.ForeignKeyConstraint(["collection_id"], ["collection.id"], name="fk_document_collection_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_document_tenant_id"),
        sa.PrimaryKeyConstraint("id", name="pk_document"),
        sa.UniqueConstraint(
            "tenant_id", "collection_id", "content_key", name="uq_document_tenant_id_collection_id_content_key"
        ),
        sa.UniqueConstraint(
            "tenant_id", "collection_id", "external_id", name="uq_document_tenant_id_collection_id_external_id"
        ),
    )
    op.create_index("ix_document_collection_id", "document", ["collection_id"])
    op.create_index("ix_document_tenant_id_created_at_id", "document", ["tenant_id", "created_at", "id"])
    op.create_table(
        "document_version",
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=True),
        sa.Column("page_count", sa.Integer(), nullable=False),
        sa.Column("first_key", sa.BigInteger(), nullable=True),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("token_count", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=True),
        sa.Column("embedding_tokens", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("indexed_at", sa.Double(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("pages", sa.JSON(), nullable=True),
        sa.Column("blocks", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name="fk_document_version_document_id"),
        sa.ForeignKeyConstraint(["generation"], ["index_generation.id"], name="fk_document_version_generation"),
        sa.PrimaryKeyConstraint("document_id", "version", name="pk_document_version"),
    )
    op.create_index("ix_document_version_sha256", "document_version", ["sha256"])
    op.create_table(
        "chunk",
        sa.Column("key", _KEY, autoincrement=False, nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("start_char", sa.Integer(), nullable=False),
        sa.Column("end_char", sa.Integer(), nullable=False),
        sa.Column("page_start", sa.Integer(), nullable=True),
        sa.Column("page_end", sa.Integer(), nullable=True),
        sa.Column("token_count", sa.Integer(), nullable=False),
        sa.Column("heading_path", sa.JSON(), nullable=False),
        sa.Column("heading", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["document.id"], name="fk_chunk_document_id"),
        sa.PrimaryKeyConstraint("key", name="pk_chunk"),
        sa.UniqueConstraint("document_id", "version", "ordinal", name="uq_chunk_document_id_version_ordinal"),
    )
    op.create_table(
        "chunk_vector",
        sa.Column("key", _KEY, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["generation"], ["index_generation.id"], name="fk_chunk_vector_generation"),
        sa.ForeignKeyConstraint(["key"], ["chunk.key"], name="fk_chunk_vector_key"),
        sa.PrimaryKeyConstraint("key", "generation", name="pk_chunk_vector"),
    )
    op.create_table(
        "key_counter",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("next_key", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_key_counter"),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("replace", sa.Boolean(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.CheckConstraint("status IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="ck_job_status"),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
    )
    op.create_index("ix_job_document_id", "job", ["document_id"])
    op.create_index("ix_job_status_created_at_id", "job", ["status", "created_at", "id"])
    op.execute("INSERT INTO key_counter (name, next_key) VALUES ('chunk', 1)")


def downgrade() -> None:
    op.drop_table("job")
    op.drop_table("key_counter")
    op.drop_table("chunk_vector")
    op.drop_table("chunk")
    op.drop_table("document_version")
    op.drop_table("document")
    op.drop_table("index_generation")
    op.drop_table("collection")
    op.drop_table("api_key")
    op.drop_table("app_user")
    op.drop_table("tenant")
