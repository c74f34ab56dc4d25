"""Passwords of protected files on their way from the process that took the upload to the one that reads the file.

They are sealed by AES-256-GCM (NIST SP 800-38D) with a key derived from FOOTNOTE_SECRET by HKDF (RFC 5869). The secret
is not in the database, so its backups and replicas open nothing. A row is sealed for its job: moved to another one, it
is not opened.
"""

import secrets
from contextlib import suppress

import sqlalchemy as sa
from pydantic import SecretStr

from app.db.dialect import clock_of, upsert
from app.db.session import Database
from app.db.tables.documents import job, job_secret
from app.errors import StorageFull, StoreUnavailable
from app.telemetry.logs import logger

_NONCE_BYTES = 12
_KEY_BYTES = 32
_SECONDS = 24 * 3600.0  # as a process that is alone keeps one
_KEEP = upsert(job_secret, change=lambda new: {"sealed": new.sealed, "kept_at": new.kept_at})


def derived_key(secret: SecretStr, purpose: str, *, size: int = _KEY_BYTES) -> bytes:
    """A key of `size` bytes that only those have who know the secret; keys of other purposes say nothing about it."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derivation = HKDF(SHA256(), size, salt=None, info=f"footnote.{purpose}".encode())
    return derivation.derive(secret.get_secret_value().encode())


class SealedPasswords:
    """The `JobPasswords` of processes that share a database. Safe to use from any thread.

    Example:
        >>> with database.write() as connection:
        ...     passwords.put_in(connection, job.id, SecretStr("s3cret"))
        >>> passwords.of(job.id)  # in any process with the same secret
        's3cret'
    """

    def __init__(self, database: Database, secret: SecretStr) -> None:
        """`secret` is the same in all processes."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._database = database
        self._cipher = AESGCM(derived_key(secret, "file-passwords"))

    def put_in(self, connection: sa.Connection, job_id: str, password: SecretStr) -> None:
        """See `JobPasswords.put_in`: whoever claims the job sees it."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, password.get_secret_value().encode(), job_id.encode())
        row = {"job_id": job_id, "sealed": sealed, "kept_at": clock_of(connection)}
        connection.execute(_KEEP.on(connection), row)

    def of(self, job_id: str) -> str | None:
        """See `JobPasswords.of`. One that cannot be opened, since it was sealed with another secret, is none.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        from cryptography.exceptions import InvalidTag

        its_row = sa.select(job_secret).where(job_secret.c.job_id == job_id)
        with self._database.read() as connection:
            row = connection.execute(its_row).one_or_none()
            if row is None or row.kept_at < clock_of(connection) - _SECONDS:
                return None
        try:
            return self._cipher.decrypt(row.sealed[:_NONCE_BYTES], row.sealed[_NONCE_BYTES:], job_id.encode()).decode()
        except InvalidTag:
            logger().error("password.not_opened", job_id=job_id, reason="FOOTNOTE_SECRET differs between processes")
            return None

    def forget(self, job_id: str) -> None:
        """See `JobPasswords.forget`. Where the database cannot be written, `forget_secrets_in` does it later."""
        with suppress(StoreUnavailable, StorageFull), self._database.write() as connection:
            connection.execute(sa.delete(job_secret).where(job_secret.c.job_id == job_id))


def forget_secrets_in(connection: sa.Connection) -> int:
    """Delete the passwords of jobs that ended, or that nobody read for a day, in the caller's transaction; how many.

    Rows that another transaction deletes at this moment are left to it.
    """
    waits = sa.exists().where(job.c.id == job_secret.c.job_id, job.c.status.in_(("queued", "running")))
    old = job_secret.c.kept_at < clock_of(connection) - _SECONDS
    unneeded = sa.select(job_secret.c.job_id).where(sa.or_(sa.not_(waits), old)).with_for_update(skip_locked=True)
    return connection.execute(sa.delete(job_secret).where(job_secret.c.job_id.in_(unneeded))).rowcount
