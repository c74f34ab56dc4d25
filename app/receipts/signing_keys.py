"""The keys that sign receipts: one signs, and the public keys of all that ever did stay.

The private key is in the database, sealed by AES-256-GCM (NIST SP 800-38D) for its public key. The secret that opens it
is not: it is FOOTNOTE_SECRET, which processes that share a database have in common, and for a process that is alone
and has none a file of the data dir that only its owner may read. Backups and replicas of the database sign nothing.
"""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from pydantic import SecretStr

from app.db.audit import Record
from app.db.dialect import advisory_lock, clock_of
from app.db.sealed_passwords import derived_key
from app.db.session import Database
from app.db.tables.access import signing_key
from app.disk import disk_refusal, sync_folder
from app.errors import SetupError
from app.receipts.signing import PublicKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_FILE = "receipts.secret"
_NONCE_BYTES = 12
_IN_USE = sa.select(signing_key).where(signing_key.c.retired_at.is_(None))


class SigningKeys:
    """The keys of an installation. Safe to use from any thread, and from processes that share a database.

    Example:
        >>> private, now = keys.current()
        >>> keys.rotate(record)
        >>> [key.retired_at is None for key in keys.public()]
        [True, False]
    """

    def __init__(self, database: Database, secret: Callable[[], SecretStr]) -> None:
        """`secret` gives what seals private keys; see `sealing_secret`. It is asked when a key is made or used."""
        self._database = database
        self._secret = secret

    def current(self) -> tuple["Ed25519PrivateKey", float]:
        """The key that signs at this moment, and the moment in Unix seconds; the first use makes the first key.

        Raises:
            SetupError: The key was sealed with another secret.
            StoreUnavailable, StorageFull: It cannot be read, or made.
        """
        with self._database.read() as connection:
            row, now = connection.execute(_IN_USE).one_or_none(), clock_of(connection)
        if row is None:
            with self._database.write() as connection:
                advisory_lock(connection, "signing-key")  # two first uses make one key
                if connection.execute(_IN_USE).one_or_none() is None:
                    self._make_in(connection)
                row, now = connection.execute(_IN_USE).one(), clock_of(connection)
        return self._opened(row), now

    def rotate(self, record: Record) -> PublicKey:
        """Sign with a new key from now on; the private key before it is deleted. The new public key.

        Args:
            record: Writes the audit log, in the same transaction.

        Raises:
            StoreUnavailable, StorageFull: Nothing has changed.
        """
        with self._database.write() as connection:
            advisory_lock(connection, "signing-key")
            before = connection.execute(_IN_USE).one_or_none()
            if before is not None:
                connection.execute(
                    sa.update(signing_key)
                    .where(signing_key.c.id == before.id)
                    .values(sealed=None, retired_at=clock_of(connection))
                )
            made = self._make_in(connection)
            record(connection, made.key_id, {"before": None if before is None else before.id})
        return made

    def public(self) -> tuple[PublicKey, ...]:
        """All keys that ever signed, the newest first.

        Raises:
            StoreUnavailable: The database cannot be read.
        """
        query = sa.select(signing_key).order_by(signing_key.c.created_at.desc(), signing_key.c.id)
        with self._database.read() as connection:
            return tuple(PublicKey(row.public, row.created_at, row.retired_at) for row in connection.execute(query))

    def _make_in(self, connection: sa.Connection) -> PublicKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        private, nonce = Ed25519PrivateKey.generate(), secrets.token_bytes(_NONCE_BYTES)
        made = PublicKey(private.public_key().public_bytes_raw(), clock_of(connection))
        sealed = nonce + AESGCM(self._sealing()).encrypt(nonce, private.private_bytes_raw(), made.raw)
        row = {"id": made.key_id, "public": made.raw, "sealed": sealed, "created_at": made.created_at}
        connection.execute(sa.insert(signing_key).values(row))
        return made

    def _opened(self, row: sa.Row[tuple[object, ...]]) -> "Ed25519PrivateKey":
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            opened = AESGCM(self._sealing()).decrypt(row.sealed[:_NONCE_BYTES], row.sealed[_NONCE_BYTES:], row.public)
        except InvalidTag:
            raise SetupError(
                "The key that signs receipts was sealed with another secret; the operator makes a new one with "
                "`footnote keys rotate-signing`."
            ) from None
        return Ed25519PrivateKey.from_private_bytes(opened)

    def _sealing(self) -> bytes:
        return derived_key(self._secret(), "receipt-keys")


def sealing_secret(configured: SecretStr | None, data_dir: Path) -> Callable[[], SecretStr]:
    """A function that gives the secret which seals private keys: the configured one, else that of the data dir.

    The file of the data dir is made at the first use, under the lock of the data dir. The function raises `StorageFull`
    or `StoreUnavailable` where it cannot be.
    """
    return lambda: configured if configured is not None else _of_data_dir(data_dir / _FILE)


def _of_data_dir(path: Path) -> SecretStr:
    try:
        with suppress(FileNotFoundError):
            return SecretStr(path.read_text(encoding="ascii"))
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32))
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
        sync_folder(path.parent)
        return SecretStr(path.read_text(encoding="ascii"))
    except OSError as error:
        raise disk_refusal(error) or SetupError("The secret that seals signing keys cannot be read.") from error
