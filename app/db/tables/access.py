"""The tables of access: sessions, OpenID identities, invitations, limits and the audit log. Times are Unix seconds."""

import sqlalchemy as sa

from app.db.tables.documents import ROLE_CHECK, metadata

# Sessions of browsers. Expired rows are removed at the next sign-in.
access_session = sa.Table(
    "access_session",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("secret_sha256", sa.Text, nullable=False, unique=True),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("key_id", sa.Text, sa.ForeignKey("api_key.id")),  # gives role and limits; NULL: OpenID
    sa.Column("role", sa.Text),  # of a session from OpenID
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False, index=True),
    sa.ForeignKeyConstraint(["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"]),
    sa.CheckConstraint(ROLE_CHECK, name="role"),
    sa.CheckConstraint("(key_id IS NULL) <> (role IS NULL)", name="key_or_role"),
    sa.Index(None, "key_id"),
    sa.Index(None, "tenant_id", "user_id"),
)

# The user that (issuer, subject) signs in as; the tenant is the setting's.
user_identity = sa.Table(
    "user_identity",
    metadata,
    sa.Column("issuer", sa.Text, primary_key=True),
    sa.Column("subject", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, primary_key=True),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.ForeignKeyConstraint(["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"]),
)

# Links that let one person in, once. `for_user_id` is set where the person is a user already.
invitation = sa.Table(
    "invitation",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, sa.ForeignKey("tenant.id"), nullable=False),
    sa.Column("token_sha256", sa.Text, nullable=False, unique=True),
    sa.Column("for_user_id", sa.Text),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("email", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("collections", sa.JSON(none_as_null=True)),  # NULL: no limit
    sa.Column("budget", sa.JSON(none_as_null=True)),  # the terms of a budget of the new key
    sa.Column("mail", sa.Text, nullable=False, server_default=sa.text("'off'")),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("created_by_key", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("revoked_at", sa.Double),
    sa.Column("accepted_at", sa.Double),
    sa.Column("user_id", sa.Text),  # who accepted it, with the key
    sa.Column("key_id", sa.Text, sa.ForeignKey("api_key.id")),
    sa.ForeignKeyConstraint(
        ["tenant_id", "for_user_id"], ["app_user.tenant_id", "app_user.id"], name="fk_invitation_for_user_id"
    ),
    sa.ForeignKeyConstraint(
        ["tenant_id", "user_id"], ["app_user.tenant_id", "app_user.id"], name="fk_invitation_user_id"
    ),
    sa.CheckConstraint(ROLE_CHECK, name="role"),
    sa.CheckConstraint("mail IN ('off', 'sent', 'failed')", name="mail"),
    sa.CheckConstraint("(accepted_at IS NULL) = (user_id IS NULL)", name="accepted_by_somebody"),
    sa.Index(None, "tenant_id", "created_at", "id"),
)

quota_override = sa.Table(
    "quota_override",
    metadata,
    sa.Column("scope_type", sa.Text, primary_key=True),
    sa.Column("scope_id", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Text, sa.ForeignKey("tenant.id"), nullable=False),
    sa.Column("requests_per_minute", sa.BigInteger),
    sa.Column("tokens_per_minute", sa.BigInteger),
    sa.Column("concurrent_requests", sa.BigInteger),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.CheckConstraint("scope_type IN ('key', 'tenant')", name="scope_type"),
    sa.Index(None, "tenant_id"),
)

# What processes that share the database count against limits; a process that is alone counts in memory. On PostgreSQL
# both are UNLOGGED: after a crash of it they are empty, as they are after one of a process that is alone.
rate_grain = sa.Table(
    "rate_grain",
    metadata,
    sa.Column("counter", sa.Text, primary_key=True),
    sa.Column("grain", sa.BigInteger, primary_key=True),  # tenths of a second since 1970
    sa.Column("amount", sa.BigInteger, nullable=False),
    sa.Index(None, "grain"),
)

# One for each request that runs and each limit of concurrent requests that counts it.
rate_seat = sa.Table(
    "rate_seat",
    metadata,
    sa.Column("seat_id", sa.Text, primary_key=True),
    sa.Column("counter", sa.Text, primary_key=True),
    sa.Column("boot_id", sa.Text, nullable=False),  # the process where the request runs
    sa.Index(None, "counter"),
)


audit_event = sa.Table(
    "audit_event",
    metadata,
    sa.Column("audit_id", sa.Text, primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("tenant_id", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("api_key_id", sa.Text, nullable=False),
    sa.Column("request_id", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False, server_default=sa.text("'{}'")),  # JSON: before and after
    sa.Index(None, "tenant_id", "at", "audit_id"),
)

# The keys that sign receipts. One is not retired; of the others the private key is deleted, the public one stays.
signing_key = sa.Table(
    "signing_key",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),  # the public key's thumbprint
    sa.Column("public", sa.LargeBinary, nullable=False),
    sa.Column("sealed", sa.LargeBinary),  # the private key (app/receipts/signing_keys.py)
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("retired_at", sa.Double),
)
