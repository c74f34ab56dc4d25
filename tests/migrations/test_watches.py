"""Revision 0041: watches go with their tables, and documents are kept; up again there is room for new ones."""

from app.db.migration import downgrade, upgrade
from app.db.session import Database
from app.db.watches import WatchRepository, WatchTerms
from app.types import Principal, Role
from tests.app.db.samples import Library

ANN = Principal("t1", "ann", "key_a", Role.MEMBER)
TERMS = WatchTerms(question="What is the fee?", on_change=True)


def test_down_and_up_again_documents_stay_and_watches_are_gone(migrated_database: Database) -> None:
    library, watches = Library(migrated_database), WatchRepository(migrated_database)
    watches.create(ANN, TERMS)
    document = library.index("The fee is 30 euros.")

    downgrade(migrated_database, "0039")
    upgrade(migrated_database)

    assert library.get(document.id) == document
    assert watches.list(ANN, limit=9) == ((), None)
    made = watches.create(ANN, TERMS)
    library.index_again(document, "The fee is 35 euros.")
    assert watches.list(ANN, limit=9)[0] == (made,)
