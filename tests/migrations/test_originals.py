"""Revision 0029: originals from before keep their places; down is refused where the schema before would lose one."""

import pytest
import sqlalchemy as sa

from app.db.migration import downgrade, upgrade
from app.db.originals import OriginalRepository
from app.db.presence import OwnProcess
from app.db.session import Database
from tests.app.db.samples import Library
from tests.migrations.originals import name_as_before


def test_originals_from_before_are_named_as_they_are_placed(migrated_database: Database) -> None:
    library = Library(migrated_database)
    document = library.index("old words", external_id="x")
    library.upload("new words", external_id="x")
    name_as_before(migrated_database)
    downgrade(migrated_database, "0028")
    with migrated_database.write() as connection:
        connection.execute(
            sa.text("INSERT INTO unattached_file VALUES ('doc_file', 't1', 'k', 'a.txt', 1, '0', 'assistants', 1.5)")
        )

    upgrade(migrated_database)

    rows = OriginalRepository(migrated_database, OwnProcess.alone("boot-1"))
    assert rows.named() == {f"{document.id}/1", f"{document.id}/2", "doc_file/0"}
    assert rows.of_version(document.id, 2) == f"{document.id}/2"
    assert rows.abandoned() == ()


def test_documents_with_names_of_their_own_are_not_taken_back(migrated_database: Database) -> None:
    library = Library(migrated_database)
    document = library.index("words", original="obj_1")

    with pytest.raises(RuntimeError, match="would not find their originals"):
        downgrade(migrated_database, "0028")

    assert OriginalRepository(migrated_database, OwnProcess.alone("boot-1")).of_version(document.id, 1) == "obj_1"
