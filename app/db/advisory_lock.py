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
        connection.execute(_SHARED if shared else _ALONE, {"number": lock_number(name)})


def lock_number(name: str) -> int:
    """The 64-bit number by which PostgreSQL knows the lock `name`."""
    digest = hashlib.blake2b(f"footnote.{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
