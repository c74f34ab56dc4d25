"""app.db.document_names knows each document's name from the moment it can be searched, and shows none out of scope."""

from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa

from app.db.document_names import LEAST_CHUNKS, DocumentNames
from app.db.session import Database
from app.db.tables.documents import key_counter
from app.types import Document
from retrieval.types import Comparison, Scope
from tests.app.db.samples import Library

ALL = Scope(tenant_id="t1")
FILES = ("acme_10k_2017.txt", "acme_10k_2018.txt", "globex letter.txt", "lease with Novak.txt")


def filled(database: Database) -> tuple[Library, dict[str, Document]]:
    library = Library(database)
    return library, {name: indexed(library, filename=name) for name in FILES}


def indexed(library: Library, **upload: object) -> Document:
    """A document long enough that its name counts."""
    content = f"{upload} of {library.tenant_id}"
    return library.index(*(f"part {number}" for number in range(LEAST_CHUNKS)), content=content, **upload)


def named(names: DocumentNames, question: str, scope: Scope = ALL) -> list[str]:
    return [one.id for one in names.named(question, scope=scope)]


def test_a_document_is_found_by_its_name_from_when_it_can_be_searched(database: Database) -> None:
    library, documents = filled(database)
    names = DocumentNames(database)
    assert named(names, "What did Acme earn in 2018, by its 10k?") == [documents["acme_10k_2018.txt"].id]
    assert named(names, "What is the policy on travel?") == []

    library.upload("waiting", filename="travel policy.txt")
    assert named(names, "What is the policy on travel?") == []
    job = library.claim()
    library.commit(job, [f"part {number}" for number in range(LEAST_CHUNKS)])
    assert named(names, "What is the policy on travel?") == [job.document_id]


def test_a_new_version_has_its_new_name(database: Database) -> None:
    library, _ = filled(database)
    names = DocumentNames(database)
    first = indexed(library, external_id="x", filename="winter plan.txt")
    assert named(names, "the winter plan") == [first.id]

    again = indexed(library, external_id="x", filename="summer budget.txt")

    assert again.id == first.id
    assert named(names, "the winter plan") == []
    assert named(names, "the summer budget") == [first.id]


def test_a_short_document_is_not_known_by_its_name(database: Database) -> None:
    library, _ = filled(database)
    library.index("one", "two", filename="travel policy.txt")

    assert named(DocumentNames(database), "What is the travel policy?") == []


def test_a_document_that_became_short_is_no_longer_known_by_its_name(database: Database) -> None:
    library, _ = filled(database)
    names = DocumentNames(database)
    long = indexed(library, external_id="x", filename="winter plan.txt")
    assert named(names, "the winter plan") == [long.id]

    library.index("short", external_id="x", filename="note.txt")

    assert named(names, "the winter plan") == []


def test_a_deleted_document_is_not_found(database: Database) -> None:
    library, documents = filled(database)
    names, lease = DocumentNames(database), documents["lease with Novak.txt"]
    assert named(names, "the lease with Novak") == [lease.id]

    library.documents.delete(lease.id, tenant_id="t1")

    assert named(names, "the lease with Novak") == []


def test_documents_that_were_deleted_are_in_nobodys_way(database: Database) -> None:
    library, documents = filled(database)
    names = DocumentNames(database, most_named=2)
    for number in range(5):
        again = indexed(library, filename="travel policy.txt", metadata={"number": number})
        assert named(names, "the travel policy") == [again.id]
        library.documents.delete(again.id, tenant_id="t1")

    assert named(names, "the travel policy") == []
    assert named(names, "the lease with Novak") == [documents["lease with Novak.txt"].id]


def test_a_name_that_too_many_documents_have_tells_none_of_them_apart(database: Database) -> None:
    library, _ = filled(database)
    names = DocumentNames(database, most_named=2)
    for number in range(3):
        indexed(library, filename="travel policy oslo.txt", metadata={"number": number})

    assert named(names, "the travel policy of oslo") == []
    assert len(named(names, "the travel policy of oslo", Scope("t1", filter=Comparison("number", "$lt", 2)))) == 2


def test_nothing_out_of_scope_is_found(database: Database) -> None:
    library, documents = filled(database)
    other = library.collections.create("t1", "other").id
    tagged = indexed(library, collection_id=other, filename="lease with Novak.txt", metadata={"year": 2024})
    indexed(Library(database, tenant_id="t2"), filename="lease with Novak.txt")
    names, question, mine = DocumentNames(database), "the lease with Novak", documents["lease with Novak.txt"].id

    assert sorted(named(names, question)) == sorted([mine, tagged.id])
    assert named(names, question, Scope("t1", collection_ids=(other,))) == [tagged.id]
    assert named(names, question, Scope("t1", document_ids=(mine,))) == [mine]
    assert named(names, question, Scope("t1", filter=Comparison("year", "$eq", 2024))) == [tagged.id]
    assert named(names, question, Scope("t1", collection_ids=())) == []
    assert len(named(names, question, Scope("t2"))) == 1


def test_another_process_that_indexed_it_makes_no_difference(database: Database) -> None:
    library, _ = filled(database)
    here, there = DocumentNames(database), DocumentNames(database)
    assert named(here, "the travel policy") == named(there, "the travel policy") == []

    added = indexed(library, filename="travel policy.txt")

    assert named(here, "the travel policy") == named(there, "the travel policy") == [added.id]


def test_the_data_of_an_older_backup_is_read_anew(database: Database) -> None:
    _, documents = filled(database)
    names = DocumentNames(database)
    assert named(names, "the lease with Novak")

    with database.write() as connection:
        connection.execute(sa.update(key_counter).where(key_counter.c.name == "chunk").values(next_key=2))

    assert named(names, "the lease with Novak") == [documents["lease with Novak.txt"].id]


def test_tenants_that_asked_longest_ago_are_read_anew(database: Database) -> None:
    filled(database)
    theirs = indexed(Library(database, tenant_id="t2"), filename="lease with Byron.txt")
    names = DocumentNames(database, most_documents=1)

    for _ in range(2):
        assert len(named(names, "the lease with Novak")) == 1
        assert named(names, "the lease with Byron", Scope("t2")) == [theirs.id]


def test_many_threads_read_names_at_once(database: Database) -> None:
    _, documents = filled(database)
    names = DocumentNames(database)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: named(names, "the lease with Novak"), range(40)))

    assert found == [[documents["lease with Novak.txt"].id]] * 40
