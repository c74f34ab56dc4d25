"""Locks by name that last as long as a transaction, on PostgreSQL."""

import hashlib

import sqlalchemy as sa

_ALONE = sa.text("SELECT pg_advisory_xact_lock(:number)")
_SHARED = sa.text("SELECT pg_advisory_xact_lock_shared(:number)")


def advisory_lock(connection: sa.Connection, name: str, *, shared: bool = False) -> None:
    """Wait for the lock `name` and hold it until the transaction ends; nothing on SQLite, which has one writer anyway.

    Those who share it do not wait for each other.
    """
    if connection.dialect.name == "postgresql":
        digest = hashlib.blake2b(f"footnote.{name}".encode(), digest_size=8).digest()
        number = int.from_bytes(digest, "big", signed=True)
        connection.execute(_SHARED if shared else _ALONE, {"number": number})
