"""The keys that sign receipts: one for all processes of a database, sealed; of retired ones the public key alone."""

from pathlib import Path
from threading import Barrier, Thread

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from app.db.audit import AuditLog
from app.db.portable import count_rows
from app.db.session import Database
from app.db.tables.access import signing_key
from app.errors import SetupError
from app.receipts.signing import NotSigned, canonical, signed, signer_of, thumbprint
from app.receipts.signing_keys import SigningKeys, sealing_secret
from app.types import Principal, Role
from tests.databases import database, postgres_database, sqlite_database

__all__ = ["database", "postgres_database", "sqlite_database"]

SECRET = SecretStr("a secret of the tests, long enough")
OPERATOR = Principal("default", "ann", "key_1", Role.ADMIN)


def keys_of(database: Database, secret: SecretStr = SECRET) -> SigningKeys:
    return SigningKeys(database, lambda: secret)


def test_processes_at_their_first_receipt_make_one_key(database: Database) -> None:
    barrier, found = Barrier(4), list[bytes]()

    def first() -> None:
        keys = keys_of(database)
        barrier.wait()
        found.append(keys.current()[0].private_bytes_raw())

    threads = [Thread(target=first) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert len({*found}) == 1
    assert len(keys_of(database).public()) == 1


def test_rotation_deletes_the_private_key_before_and_keeps_its_public_key(database: Database) -> None:
    keys, other = keys_of(database), keys_of(database)
    before, at = keys.current()
    record = AuditLog(database).recording(OPERATOR, "signing_key.rotated")
    made = keys.rotate(record)

    private, now = other.current()
    assert private.public_key().public_bytes_raw() == made.raw
    new, old = keys.public()
    assert (new, old.raw) == (made, before.public_key().public_bytes_raw())
    assert old.retired_at is not None
    assert at <= old.retired_at <= now
    with database.read() as connection:
        sealed = {row.id: row.sealed for row in connection.execute(sa.select(signing_key))}
    assert sealed[old.key_id] is None
    assert private.private_bytes_raw() not in (sealed[made.key_id] or b"")
    (entry,), _ = AuditLog(database).list(tenant_id="default", limit=5)
    assert (entry.target, entry.detail) == (made.key_id, {"before": old.key_id})


def test_another_secret_opens_no_key_and_the_operator_makes_a_new_one(database: Database) -> None:
    keys_of(database).current()
    other = keys_of(database, SecretStr("another secret of the tests, as long"))

    with pytest.raises(SetupError, match="footnote keys rotate-signing"):
        other.current()
    made = other.rotate(AuditLog(database).recording(OPERATOR, "signing_key.rotated"))
    assert other.current()[0].public_key().public_bytes_raw() == made.raw
    assert len(other.public()) == 2


def test_a_sealed_key_moved_to_another_row_is_not_opened(database: Database) -> None:
    keys = keys_of(database)
    keys.current()
    with database.write() as connection:
        connection.execute(sa.update(signing_key).values(public=bytes(32)))

    with pytest.raises(SetupError):
        keys.current()


def test_backups_have_the_keys_and_nothing_that_opens_them(database: Database) -> None:
    keys_of(database).current()
    with database.read() as connection:
        assert count_rows(connection)["signing_key"] == 1


def test_a_process_alone_without_a_secret_makes_one_that_its_owner_alone_reads(tmp_path: Path) -> None:
    secret = sealing_secret(None, tmp_path)
    made = secret()
    (path,) = tmp_path.iterdir()

    assert path.stat().st_mode & 0o777 == 0o600
    assert secret() == made == sealing_secret(None, tmp_path)()
    assert sealing_secret(SECRET, tmp_path)() == SECRET
    with pytest.raises(SetupError):
        sealing_secret(None, path)()


def test_thumbprints_and_signatures_are_those_of_the_standards() -> None:
    # RFC 8037, appendix A: the key, its thumbprint, and the signature over a canonical text
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(
        bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    )
    public = private.public_key().public_bytes_raw()

    assert thumbprint(public) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    # RFC 8785, section 3.2.3
    expected = '{"\\r":1e+30,"1":[56,4.5],"€":"Euro"}'
    assert canonical({"\u20ac": "Euro", "\r": 1e30, "1": [56.0, 4.5]}) == expected.encode()
    receipt = signed({"format": "x"}, private)
    assert signer_of(receipt) == public
    with pytest.raises(NotSigned, match="no canonical form"):
        canonical({"a": 2**60})
    with pytest.raises(NotSigned, match="no canonical form"):
        canonical({"a": "\ud800"})
