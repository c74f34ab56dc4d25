"""Revision 0020, the first release: databases that the migrations before it made go on, and others are refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.answering.conversations.answer_record import AnswerRecord
from app.db.chunks import ChunkRepository
from app.db.conversations import ConversationRepository
from app.db.jobs import JobRepository
from app.db.migration import current_revision, downgrade, head_revision, upgrade
from app.db.session import Database
from app.errors import SetupError
from app.types import JobStatus, Principal, Role, UsageStatus
from app.usage.ledger.ledger import Ledger
from migrations.first_release import FIRST, LAST_BEFORE, Objects, differences, objects
from retrieval.types import Scope
from tests.app.backup.backed_up import settings_of
from tests.backups import back_up, restore
from tests.databases import empty_database
from tests.migrations.old_0020 import Rows, build, rows_of
from tests.postgres import empty_postgres

ADA = Principal("t1", "ada", "key_1", Role.ADMIN)

__all__ = ["empty_database"]


@pytest.fixture
def old(empty_database: Database) -> Database:
    """A database of each kind that the migrations from before left at 0020, with rows in every table."""
    build(empty_database)
    return empty_database


def objects_of(database: Database) -> Objects:
    with database.read() as connection:
        return objects(connection)


def new_objects(kind: str, folder: Path, revision: str = "head") -> Objects:
    """The objects of a database that the migrations of today made."""
    if kind == "sqlite":
        return _made(f"sqlite:///{folder / 'new.db'}", revision)
    with empty_postgres() as url:
        return _made(url, revision)


def _made(url: str, revision: str) -> Objects:
    database = Database.open(url)
    try:
        upgrade(database, revision)
        return objects_of(database)
    finally:
        database.close()


def in_columns_of(before: Rows, after: Rows) -> Rows:
    """The rows of `after` without the tables and columns that `before` did not have."""
    return {
        table: sorted(({name: row[name] for name in rows[0]} for row in after[table]), key=str)
        for table, rows in before.items()
    }


def sorted_rows(rows: Rows) -> Rows:
    return {table: sorted(found, key=str) for table, found in rows.items()}


def url_of(database: Database, folder: Path) -> str:
    if database.kind == "sqlite":
        return f"sqlite:///{folder / 'empty.db'}"
    with database.read() as connection:
        return connection.engine.url.render_as_string(hide_password=False)


def change(database: Database, *statements: str) -> None:
    with database.write() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_the_rows_are_in_every_table(old: Database) -> None:
    tables = {table for table, named in objects_of(old) if named == f"table {table}"}

    assert rows_of(old).keys() == tables - {"chunk_fts", "chunk_trigram"}


def test_the_first_release_makes_what_the_migrations_before_it_made(old: Database, tmp_path: Path) -> None:
    made = new_objects(old.kind, tmp_path, FIRST)

    assert objects_of(old) == made
    assert {named.split()[0] for _, named in made} >= {"table", "index", "trigger"}


def test_a_database_from_before_is_carried_over_with_all_its_rows(old: Database, tmp_path: Path) -> None:
    before = rows_of(old)

    copy = upgrade(old, copies=tmp_path / "backups")

    assert current_revision(old) == head_revision()
    assert objects_of(old) == new_objects(old.kind, tmp_path)
    for request in before["idempotent_request"]:
        request["body"] = None  # forgotten by 0021: their tenant was not known
    assert in_columns_of(before, rows_of(old)) == sorted_rows(before)
    assert (copy is not None) == (old.kind == "sqlite")
    if copy is not None:
        assert copy.name.startswith(f"before-{FIRST}-")


def test_what_was_carried_over_is_read_searched_and_gone_on_with(old: Database) -> None:
    upgrade(old)

    turns = ConversationRepository(old).turns("conv_1", principal=ADA)
    records = [AnswerRecord.of_turn(turn) for turn in turns]
    kinds = [None if record is None else [part.kind for part in record.parts] for record in records]
    assert kinds == [None, ["prose"], ["quote"], ["refusal"], ["prose"]]
    found = ChunkRepository(old).search_text("who built the ferry", scope=Scope(tenant_id="t1"), k=3)
    assert [key for key, *_ in found] == [1]
    jobs = JobRepository(old)
    assert jobs.requeue_orphans("boot_2") == 1
    claimed = jobs.claim("boot_2")
    assert claimed is not None
    assert claimed[1].id in {"doc_2", "doc_3"}
    assert jobs.get("job_4", tenant_id="t1").status is JobStatus.FAILED


def test_settled_calls_stay_as_they_are_and_open_ones_are_settled_once(old: Database) -> None:
    upgrade(old)

    with pytest.raises(sa.exc.DBAPIError, match="usage_event is immutable once settled"):
        change(old, "UPDATE usage_event SET cost_pico = 0 WHERE event_id = 'evt_1'")
    with pytest.raises(sa.exc.DBAPIError, match="audit_event rows are never deleted"):
        change(old, "DELETE FROM audit_event")
    with pytest.raises(sa.exc.DBAPIError, match="overlap"):
        change(old, "INSERT INTO price SELECT 'p3', model_id, meter, currency, 1, effective_from + 1, NULL, '', '', 1 "
                    "FROM price WHERE price_id = 'pri_2'")  # fmt: skip
    ledger = Ledger(old, "boot_2")
    assert (ledger.recover(), ledger.recover()) == (2, 0)
    assert {event.status for event in ledger.usage("req_3")} == {UsageStatus.RECOVERED}


def test_up_down_and_up_again_loses_nothing(old: Database, tmp_path: Path) -> None:
    upgrade(old)
    first = rows_of(old)
    downgrade(old, FIRST)
    with old.write() as connection:
        differing = differences(connection)
    upgrade(old)
    again = rows_of(old)

    assert differing == []
    assert again == first
    downgrade(old, "base")
    assert objects_of(old) == {}
    upgrade(old)
    assert objects_of(old) == new_objects(old.kind, tmp_path)


def test_a_backup_from_before_is_restored_and_carried_over(old: Database, tmp_path: Path) -> None:
    rows = rows_of(old)
    data_dir = tmp_path / "data"
    data_dir.mkdir()
    back_up(settings_of(data_dir, database_url=url_of(old, tmp_path)), tmp_path / "saved.tar.gz")

    restore(settings_of(tmp_path / "restored"), tmp_path / "saved.tar.gz")

    database = Database.open(f"sqlite:///{tmp_path / 'restored' / 'footnote.db'}")
    try:
        assert current_revision(database) == FIRST
        assert rows_of(database) == rows
        upgrade(database)
        assert current_revision(database) == head_revision()
    finally:
        database.close()


@pytest.mark.parametrize("revision", ["0001", "0019"])
@pytest.mark.parametrize("use", [upgrade, lambda database: downgrade(database, "base")])
def test_a11_a_database_older_than_the_first_release_is_told_which_commit_brings_it_there(
    old: Database, tmp_path: Path, revision: str, use: Callable[[Database], object]
) -> None:
    change(old, f"UPDATE alembic_version SET version_num = '{revision}'")
    before, rows = objects_of(old), rows_of(old)

    with pytest.raises(SetupError, match=rf"too old .*at revision {revision}.*{LAST_BEFORE.split()[0]}"):
        use(old)

    assert (objects_of(old), rows_of(old), current_revision(old)) == (before, rows, revision)


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        (["DROP TRIGGER usage_event_no_update{on}"], ["trigger usage_event_no_update is missing"]),
        (["CREATE TABLE invoice (id TEXT PRIMARY KEY)"], ["table invoice is not of Footnote"]),
        (["CREATE VIEW paid AS SELECT 1"], ["view paid is not of Footnote"]),
        (["DROP INDEX ix_job_document_id"], ["index ix_job_document_id is missing"]),
        (["DROP TABLE feedback"], ["table feedback is missing"]),
        (["ALTER TABLE job ADD COLUMN more TEXT"], ["table job differs"]),
        (
            ["DROP INDEX ux_api_request_idem", "CREATE INDEX ux_api_request_idem ON api_request (idem_key)"],
            ["index ux_api_request_idem differs"],
        ),
        (
            [f"CREATE TABLE t{number} (a TEXT)" for number in range(12)],
            ["table t0 is not of Footnote", "table t1 is not of Footnote", "and 2 more"],
        ),
    ],
)
def test_a11_a_database_that_is_not_as_0020_made_it_is_refused_by_the_names_of_what_differs(
    old: Database, tmp_path: Path, statements: list[str], named: list[str]
) -> None:
    on = "" if old.kind == "sqlite" else " ON usage_event"
    change(old, *(statement.format(on=on) for statement in statements))
    before, rows = objects_of(old), rows_of(old)

    with pytest.raises(SetupError, match="Nothing was changed") as refusal:
        upgrade(old, copies=tmp_path / "backups")

    said = str(refusal.value).partition("makes it: ")[2].partition(". ")[0].split("; ")
    assert [each for each in said if each in named] == named
    assert len(said) == len(named) or len(statements) == 12
    assert (objects_of(old), rows_of(old), current_revision(old)) == (before, rows, FIRST)
    assert not (tmp_path / "backups").exists()


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("ALTER TABLE price DISABLE TRIGGER price_no_delete", "trigger price_no_delete differs"),
        ("CREATE FUNCTION other() RETURNS int LANGUAGE sql AS 'SELECT 1'", "function other is not of Footnote"),
        (
            "CREATE OR REPLACE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
            "function ledger_refuse differs",
        ),
        ("ALTER TABLE job DROP CONSTRAINT ck_job_ck_job_status", "constraint ck_job_ck_job_status is missing"),
        ("ALTER TABLE usage_event ALTER cost_pico SET DEFAULT 0", "table usage_event differs"),
        ("CREATE SEQUENCE numbers", "sequence numbers is not of Footnote"),
    ],
)
def test_a11_what_only_postgresql_has_is_compared_too(statement: str, named: str) -> None:
    with empty_postgres() as url:
        database = Database.open(url)
        build(database)
        change(database, statement)

        with pytest.raises(SetupError, match=f"makes it: {named}\\. "):
            upgrade(database)
        database.close()


def test_a_user_who_may_not_create_schemas_is_told_the_right_that_is_missing() -> None:
    with empty_postgres() as url:
        database = Database.open(url)
        build(database)
        change(
            database,
            "CREATE ROLE narrow LOGIN",
            "GRANT ALL ON ALL TABLES IN SCHEMA public TO narrow",
        )
        narrow = Database.open(sa.make_url(url).set(username="narrow").render_as_string())
        try:
            with pytest.raises(SetupError, match="right to create schemas"):
                upgrade(narrow)
        finally:
            narrow.close()
            change(database, "DROP OWNED BY narrow", "DROP ROLE narrow")
            database.close()


def test_what_an_extension_made_is_no_difference() -> None:
    with empty_postgres() as url:
        database = Database.open(url)
        build(database)
        change(database, "CREATE FUNCTION other() RETURNS int LANGUAGE sql AS 'SELECT 1'",
               "ALTER EXTENSION plpgsql ADD FUNCTION other()")  # fmt: skip
        with database.write() as connection:
            assert differences(connection) == []
        database.close()
