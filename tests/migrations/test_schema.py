"""The migrations build exactly the tables the code works with, on both databases, in both directions."""

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from app.db.migration import current_revision, downgrade, head_revision, is_mapped, upgrade
from app.db.session import Database
from app.db.tables import metadata
from app.errors import SetupError


def tables(database: Database) -> set[str]:
    with database.read() as connection:
        return set(sa.inspect(connection).get_table_names())


def test_up_down_and_up_again_ends_at_the_head(empty_database: Database) -> None:
    upgrade(empty_database)
    built = tables(empty_database)
    downgrade(empty_database, "base")
    left = tables(empty_database)
    upgrade(empty_database)

    assert left == {"alembic_version"}
    assert tables(empty_database) == built >= set(metadata.tables)
    assert current_revision(empty_database) == head_revision()


def test_each_revision_can_be_taken_back_alone(empty_database: Database) -> None:
    upgrade(empty_database)
    while current_revision(empty_database) is not None:
        before = current_revision(empty_database)
        downgrade(empty_database, "-1")
        assert current_revision(empty_database) != before
    assert tables(empty_database) == {"alembic_version"}


def test_upgrading_twice_changes_nothing(migrated_database: Database) -> None:
    upgrade(migrated_database)

    assert current_revision(migrated_database) == head_revision()


def test_the_metadata_equals_the_migrated_schema(migrated_database: Database) -> None:
    with migrated_database.read() as connection:
        options = {"include_object": is_mapped, "compare_type": True, "compare_server_default": True}
        difference = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    assert difference == []


def test_the_comparison_would_notice_a_missing_column(migrated_database: Database) -> None:
    with migrated_database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE job DROP COLUMN finished_at")
    with migrated_database.read() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_mapped})
        difference = compare_metadata(context, metadata)

    assert [change[0] for change in difference] == ["add_column"]


@pytest.mark.parametrize("use", [upgrade, lambda database: downgrade(database, "base")])
def test_a_newer_schema_is_refused_and_left_alone(migrated_database: Database, use) -> None:
    with migrated_database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    before = tables(migrated_database)

    with pytest.raises(SetupError, match="newer Footnote"):
        use(migrated_database)
    assert tables(migrated_database) == before


def test_a_migration_that_fails_half_way_leaves_the_old_schema(empty_database: Database) -> None:
    with empty_database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE usage_event (stands_in_the_way INTEGER)")

    with pytest.raises(sa.exc.DBAPIError):
        upgrade(empty_database)

    assert tables(empty_database) - {"alembic_version"} == {"usage_event"}
    assert current_revision(empty_database) is None
    with empty_database.write() as connection:
        connection.exec_driver_sql("DROP TABLE usage_event")
    upgrade(empty_database)
    assert current_revision(empty_database) == head_revision()
