"""app.db.sealed_passwords: whoever has the secret opens a password while its job waits or runs, and nobody else."""

import pytest
import sqlalchemy as sa
from pydantic import SecretStr
from structlog.testing import capture_logs

from app.db.dialect import clock_of
from app.db.sealed_passwords import SealedPasswords, derived_key, forget_secrets_in
from app.db.session import Database
from app.db.tables.documents import job_secret
from tests.app.db.samples import Library
from tests.databases import database, migrated_file, postgres_database, sqlite_database
from tests.server import SECRET

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]

WORD = "open-sesame"


def passwords(database: Database, secret: str = SECRET) -> SealedPasswords:
    """Those of a process."""
    return SealedPasswords(database, SecretStr(secret))


def put(database: Database, job_id: str, word: str = WORD) -> None:
    with database.write() as connection:
        passwords(database).put_in(connection, job_id, SecretStr(word))


def kept(database: Database) -> list[str]:
    with database.read() as connection:
        return list(connection.execute(sa.select(job_secret.c.job_id).order_by(job_secret.c.job_id)).scalars())


def sweep(database: Database) -> int:
    with database.write() as connection:
        return forget_secrets_in(connection)


def test_another_process_opens_it_until_it_is_forgotten(database: Database) -> None:
    put(database, "job_1")
    other = passwords(database)

    assert other.of("job_1") == other.of("job_1") == WORD
    assert other.of("job_2") is None
    other.forget("job_1")
    other.forget("job_1")
    assert (passwords(database).of("job_1"), kept(database)) == (None, [])


def test_a_newer_password_of_a_job_takes_the_place_of_the_older(database: Database) -> None:
    put(database, "job_1", "wrong")
    put(database, "job_1", "rïght 🔑")

    assert passwords(database).of("job_1") == "rïght 🔑"


def test_it_is_there_if_and_only_if_its_job_is(database: Database) -> None:
    def fails() -> None:
        with database.write() as connection:
            passwords(database).put_in(connection, "job_1", SecretStr(WORD))
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        fails()

    assert kept(database) == []


def test_the_database_holds_nothing_that_opens_it(database: Database) -> None:
    put(database, "job_1")
    put(database, "job_2")
    with database.read() as connection:
        first, second = connection.execute(sa.select(job_secret.c.sealed).order_by(job_secret.c.job_id)).scalars()

    assert WORD.encode() not in first
    assert first != second, "the same word twice is not the same row"
    with capture_logs() as logs:
        assert passwords(database, "x" * 32).of("job_1") is None
    assert [line["event"] for line in logs] == ["password.not_opened"]
    assert WORD not in str(logs)


def test_a_row_that_was_moved_or_changed_is_not_opened(database: Database) -> None:
    put(database, "job_1")
    with database.write() as connection:
        connection.execute(sa.update(job_secret).values(job_id="job_2"))
    assert passwords(database).of("job_2") is None

    put(database, "job_3")
    with database.write() as connection:
        sealed = connection.execute(sa.select(job_secret.c.sealed).where(job_secret.c.job_id == "job_3")).scalar_one()
        changed = sealed[:-1] + bytes([sealed[-1] ^ 1])
        connection.execute(sa.update(job_secret).where(job_secret.c.job_id == "job_3").values(sealed=changed))
    assert passwords(database).of("job_3") is None


def test_the_sweep_leaves_those_of_jobs_that_wait_or_run(database: Database) -> None:
    library = Library(database)
    waiting, running, failed = (library.upload(f"Text {number}.").job_id for number in range(3))
    claims = {}
    for job_id in (waiting, running, failed, "job_of_nothing"):
        put(database, job_id)
    while (claim := library.jobs.claim("boot-1")) is not None:
        claims[claim[0].id] = claim[0]
    library.jobs.fail(claims[failed], code="encrypted", detail="It needs a password.")
    library.jobs.release(claims[waiting])

    assert sweep(database) == 2
    assert kept(database) == sorted([waiting, running])


def test_after_a_day_it_is_gone(database: Database) -> None:
    library = Library(database)
    old, new = (library.upload(f"Text {number}.").job_id for number in range(2))
    put(database, old)
    put(database, new)
    with database.write() as connection:
        before = clock_of(connection) - 24 * 3600 - 1
        connection.execute(sa.update(job_secret).where(job_secret.c.job_id == old).values(kept_at=before))

    assert (passwords(database).of(old), passwords(database).of(new)) == (None, WORD)
    assert sweep(database) == 1
    assert kept(database) == [new]


def test_keys_of_two_purposes_and_of_two_secrets_differ() -> None:
    keys = {derived_key(SecretStr(secret), purpose) for secret in ("a" * 32, "b" * 32) for purpose in ("one", "two")}

    assert len(keys) == 4
    assert {len(key) for key in keys} == {32}


def test_nothing_shows_the_secret(database: Database) -> None:
    assert SECRET not in repr(vars(passwords(database)))
