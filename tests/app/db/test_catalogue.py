"""app.db.catalogue finds documents by the words of their names, within a scope."""

from app.db.catalogue import CatalogueRepository
from app.db.session import Database
from retrieval.types import Comparison, Scope
from tests.app.db.samples import Library

ALL = Scope(tenant_id="t1")


def test_documents_with_most_of_the_words_come_first_and_others_not_at_all(database: Database) -> None:
    library, catalogue = Library(database), CatalogueRepository(database)
    for name in ("Annual_Report.pdf", "annual-report-oslo.pdf", "memo.txt", "100%_report.pdf"):
        library.index(name, filename=name)
    library.upload("waiting", filename="annual report waiting.pdf")

    def named(*words: str, scope: Scope = ALL, limit: int = 9) -> list[str]:
        return [found.filename for found in catalogue.named(scope, words=words, limit=limit)]

    assert named("annual", "report", "oslo") == ["annual-report-oslo.pdf", "Annual_Report.pdf", "100%_report.pdf"]
    assert named("annual", "report", "oslo", limit=1) == ["annual-report-oslo.pdf"]
    assert named("memo") == ["memo.txt"]
    assert named("%") == ["100%_report.pdf"]
    assert named("unicorn") == named("memo", scope=Scope(tenant_id="t2")) == []
    assert named("memo", scope=Scope(tenant_id="t1", filter=Comparison("year", "$eq", 2024))) == []


def test_marks_between_the_words_of_a_name_do_not_count(database: Database) -> None:
    library, catalogue = Library(database), CatalogueRepository(database)
    files = ("apple_10q.pdf", "Nvidia 10-Q.pdf", "10 Q.pdf", "intel.10.q.pdf")
    for name in files:
        library.index(name, filename=name)

    assert {found.filename for found in catalogue.named(ALL, words=["10q"], limit=9)} == set(files)


def test_without_words_the_newest_come_first(database: Database) -> None:
    library, catalogue = Library(database), CatalogueRepository(database)
    documents = [library.index(name, filename=name) for name in ("a.txt", "b.txt", "c.txt")]

    assert [found.filename for found in catalogue.named(ALL, limit=2)] == ["c.txt", "b.txt"]
    (found,) = catalogue.named(ALL, ids=[documents[0].id, "doc_unknown"], limit=9)
    assert (found.id, found.version, found.filename, found.title) == (documents[0].id, 1, "a.txt", None)
    assert catalogue.named(ALL, ids=[], limit=9) == ()
