"""Revision 0045: tables of answers go with it, and documents are kept; up again there is room for new ones."""

from app.db.answer_tables import AnswerTableRepository, Column
from app.db.migration import downgrade, upgrade
from app.db.session import Database
from app.types import Principal, Role
from retrieval.types import Scope
from tests.app.db.samples import Library

ANN = Principal("t1", "ann", "key_a", Role.MEMBER)
COLUMNS = (Column("Fee", "What is the fee?"),)


def test_down_and_up_again_documents_stay_and_tables_are_gone(migrated_database: Database) -> None:
    library, tables = Library(migrated_database), AnswerTableRepository(migrated_database)
    document = library.index("The fee is 30 euros.")
    tables.create(ANN, COLUMNS, Scope(tenant_id="t1"))

    downgrade(migrated_database, "0044")
    upgrade(migrated_database)

    assert library.get(document.id) == document
    assert tables.list(ANN, limit=9) == ((), None)
    made = tables.create(ANN, COLUMNS, Scope(tenant_id="t1"))
    assert tables.list(ANN, limit=9)[0] == (made,)
