"""An upload becomes a document once; versions swap whole; a deletion is final."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa

from app.db.chunks import ChunkRepository
from app.db.session import Database
from app.db.tables.documents import chunk, chunk_vector, document, document_version
from app.errors import Conflict, InvalidRequest, NotFound
from app.types import Document, DocumentStatus, JobStatus
from retrieval.types import Comparison, Scope
from tests.app.db.samples import Library, new_document


@pytest.fixture
def library(database: Database) -> Library:
    return Library(database)


def rows(database: Database, table: sa.Table) -> int:
    with database.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_a_new_document_waits_for_its_job(library: Library) -> None:
    new = new_document(library.collection_id, "text", filename="r.pdf", metadata={"year": 2024, "tags": ["a", None]})

    created, is_new = library.documents.create(new, user_id="u1", key_id="k1")

    assert is_new
    assert (created.id, created.filename, created.bytes, created.sha256) == (new.id, "r.pdf", 4, new.sha256)
    assert (created.version, created.live_version, created.status) == (1, None, DocumentStatus.QUEUED)
    assert created.metadata == {"year": 2024, "tags": ["a", None]}
    assert (created.chunks, created.attempts, created.embedding_model, created.error_code) == (0, 0, None, None)
    job = library.jobs.get(created.job_id, tenant_id="t1")
    assert (job.document_id, job.version, job.status, job.user_id, job.key_id) == (
        created.id,
        1,
        JobStatus.QUEUED,
        "u1",
        "k1",
    )
    assert library.get(new.id) == created


def test_the_same_bytes_under_another_name_are_the_existing_document(library: Library) -> None:
    first = library.upload("same", filename="a.txt")

    again, is_new = library.documents.create(
        new_document(library.collection_id, "same", filename="b.txt"), user_id="u2", key_id="k2"
    )

    assert (again.id, again.filename, is_new) == (first.id, "a.txt", False)


def test_other_collections_and_tenants_have_their_own_copy(library: Library) -> None:
    first = library.upload("same")
    elsewhere = library.collections.create("t1", "other")
    stranger = Library(library.database, tenant_id="t2")

    assert len({first.id, library.upload("same", collection_id=elsewhere.id).id, stranger.upload("same").id}) == 3


def test_parallel_uploads_of_the_same_bytes_make_one_document(library: Library) -> None:
    def upload(_: int) -> tuple[Document, bool]:
        return library.documents.create(new_document(library.collection_id, "same"), user_id="u", key_id="k")

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(upload, range(20)))

    assert len({answer.id for answer, _ in answers}) == 1
    assert sum(is_new for _, is_new in answers) == 1
    assert library.jobs.queued() == 1


def test_parallel_uploads_under_one_external_id_make_one_document(library: Library) -> None:
    def upload(number: int) -> tuple[Document, bool]:
        new = new_document(library.collection_id, f"content {number}", external_id="x")
        return library.documents.create(new, user_id="u", key_id="k")

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(upload, range(10)))

    assert len({answer.id for answer, _ in answers}) == 1
    assert sorted(answer.version for answer, _ in answers) == list(range(1, 11))
    assert library.jobs.queued() == 1, "the newest version alone is still to do"


@pytest.mark.parametrize("on_duplicate", [None, "skip", "replace", "version"])
def test_the_same_external_id_and_bytes_change_nothing(library: Library, on_duplicate) -> None:
    first = library.upload("same", external_id="x")

    again = library.documents.create(
        new_document(library.collection_id, "same", external_id="x"),
        on_duplicate=on_duplicate,
        user_id="u1",
        key_id="k1",
    )

    assert again == (first, False)


@pytest.mark.parametrize("on_duplicate", [None, "replace", "version"])
def test_the_same_external_id_with_other_bytes_is_a_new_version(library: Library, on_duplicate) -> None:
    first = library.index("old words", external_id="x", metadata={"a": 1})
    new = new_document(library.collection_id, "new", filename="b.txt", external_id="x", metadata={"a": 2})
    queued: list[tuple[str, int]] = []

    updated, is_new = library.documents.create(
        new,
        on_duplicate=on_duplicate,
        user_id="u1",
        key_id="k1",
        while_queued=lambda _, document: queued.append((document.id, document.version)),
    )

    assert is_new
    assert queued == [(first.id, 2)]
    assert (updated.id, updated.version, updated.live_version) == (first.id, 2, 1)
    assert (updated.filename, updated.sha256, updated.status) == ("b.txt", new.sha256, DocumentStatus.QUEUED)
    assert updated.metadata == {"a": 2}
    assert library.jobs.get(updated.job_id, tenant_id="t1").replace == (on_duplicate == "replace")


def test_an_empty_metadata_of_a_new_version_keeps_the_old(library: Library) -> None:
    library.upload("old", external_id="x", metadata={"a": 1})

    assert library.upload("new", external_id="x").metadata == {"a": 1}


def test_skip_keeps_the_existing_document_whatever_the_bytes(library: Library) -> None:
    first = library.upload("old", external_id="x")

    answer = library.documents.create(
        new_document(library.collection_id, "new", external_id="x"), on_duplicate="skip", user_id="u", key_id="k"
    )

    assert answer == (first, False)


@pytest.mark.parametrize(("external_id", "content"), [(None, "same"), ("x", "other")])
def test_error_refuses_a_duplicate(library: Library, external_id: str | None, content: str) -> None:
    library.upload("same", external_id=external_id)

    with pytest.raises(Conflict):
        library.documents.create(
            new_document(library.collection_id, content, external_id=external_id),
            on_duplicate="error",
            user_id="u",
            key_id="k",
        )


def test_a_failed_document_is_queued_again_by_its_duplicate(library: Library) -> None:
    created = library.upload("same")
    library.jobs.fail(library.claim(), code="no-text", detail="There is no text.")

    again = library.upload("same")

    assert (again.id, again.status) == (created.id, DocumentStatus.QUEUED)
    assert again.job_id != created.job_id
    assert again.error_code is None


def known(library: Library, content: str, **fields: str) -> Document | None:
    new = new_document(library.collection_id, content)
    return library.documents.known(new, user_id="u", key_id="k", **fields)  # type: ignore[arg-type]


def test_only_bytes_that_are_there_are_known_before_they_are_stored(library: Library) -> None:
    created = library.index("words", content="same", original="obj_old")

    assert known(library, "same") == library.get(created.id)
    assert known(library, "other") is None
    with pytest.raises(Conflict):
        known(library, "same", on_duplicate="error")
    assert rows(library.database, document_version) == 1


def test_a_failed_document_that_is_known_is_queued_again_and_told(library: Library) -> None:
    created = library.upload("same")
    library.jobs.fail(library.claim(), code="no-text", detail="There is no text.")
    told: list[str] = []

    new = new_document(library.collection_id, "same")
    again = library.documents.known(new, user_id="u", key_id="k", while_queued=lambda _, one: told.append(one.job_id))

    assert again is not None
    assert (again.id, again.status, told) == (created.id, DocumentStatus.QUEUED, [again.job_id])


def test_a_failure_before_the_commit_leaves_no_document(library: Library) -> None:
    def fail(_: sa.Connection, __: Document) -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        library.documents.create(new_document(library.collection_id), user_id="u", key_id="k", while_queued=fail)

    assert rows(library.database, document) == 0
    assert library.jobs.queued() == 0


@pytest.mark.parametrize("tenant_id", ["t1", "t2"])
def test_a_collection_that_is_not_there_or_not_ones_own_is_not_found(library: Library, tenant_id: str) -> None:
    collection_id = library.collection_id if tenant_id == "t2" else "col_none"

    with pytest.raises(NotFound):
        library.documents.create(new_document(collection_id, tenant_id=tenant_id), user_id="u", key_id="k")


@pytest.mark.parametrize(
    "bad",
    [
        {"metadata": {"x": float("nan")}},
        {"metadata": {"x": 2**63}},
        {"metadata": {"x": {"y": 1}}},
        {"metadata": {"x": [["y"]]}},
        {"metadata": {"x": "a\0b"}},
        {"metadata": {"a\0b": 1}},
        {"filename": "a\0b"},
        {"external_id": "\ud800"},
    ],
)
def test_what_no_database_can_hold_is_refused(library: Library, bad: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        library.documents.create(replace(new_document(library.collection_id), **bad), user_id="u", key_id="k")  # type: ignore[arg-type]


def test_a_version_by_put_is_searched_only_when_it_is_indexed(library: Library) -> None:
    first = library.index("old words")

    updated = library.documents.add_version(
        first.id, tenant_id="t1", original="obj_2", filename="b.txt", size=3, sha256="0" * 64, user_id="u", key_id="k"
    )
    waiting = library.get(first.id)
    library.commit(library.claim(), ["new words"])

    assert (updated.version, updated.live_version, waiting.chunks) == (2, 1, 1)
    indexed = library.get(first.id)
    assert (indexed.live_version, indexed.status, indexed.bytes) == (2, DocumentStatus.INDEXED, 3)


def test_bytes_that_a_put_took_away_are_no_longer_that_document(library: Library) -> None:
    first = library.upload("old")
    library.documents.add_version(
        first.id, tenant_id="t1", original="obj_2", filename="a.txt", size=1, sha256="0" * 64, user_id="u", key_id="k"
    )

    assert library.upload("old").id != first.id


def test_a_put_may_make_two_documents_alike(library: Library) -> None:
    one, other = library.upload("one"), library.upload("other")

    library.documents.add_version(
        other.id, tenant_id="t1", original="obj_2", filename="a.txt", size=3, sha256=one.sha256, user_id="u", key_id="k"
    )

    assert library.upload("one").id == one.id


@pytest.mark.parametrize("collections", [None, ("col_other",)])
def test_a_document_outside_tenant_or_collections_does_not_exist(
    library: Library, collections: tuple[str, ...] | None
) -> None:
    mine = library.index("words").id
    who = {"tenant_id": "t1" if collections else "t2", "collections": collections}
    documents = library.documents

    for call in (
        lambda: documents.get(mine, **who),  # type: ignore[arg-type]
        lambda: documents.delete(mine, **who),  # type: ignore[arg-type]
        lambda: documents.update_metadata(mine, {}, **who),  # type: ignore[arg-type]
        lambda: documents.retry(mine, user_id="u", key_id="k", **who),  # type: ignore[arg-type]
        lambda: documents.add_version(mine, original="", filename="", size=0, sha256="", user_id="", key_id="", **who),  # type: ignore[arg-type]
    ):
        with pytest.raises(NotFound):
            call()
    assert documents.list(limit=5, **who) == ((), None)  # type: ignore[arg-type]


def test_a_list_goes_newest_first_and_its_pages_make_the_whole(library: Library) -> None:
    created = [library.upload(f"content {number}").id for number in range(7)]
    pages, cursor = [], None
    while True:
        page, cursor = library.documents.list(tenant_id="t1", limit=3, cursor=cursor)
        pages.append([each.id for each in page])
        if cursor is None:
            break

    assert [len(page) for page in pages] == [3, 3, 1]
    assert [each for page in pages for each in page] == created[::-1]
    assert library.documents.list(tenant_id="t1", limit=7)[1] is None, "a full last page is the last"


def test_documents_created_in_the_same_moment_are_listed_once_each(database: Database) -> None:
    from app.db.documents import DocumentRepository

    library = Library(database)
    library.documents = DocumentRepository(database, clock=lambda: 1000.25)
    created = {library.upload(f"content {number}").id for number in range(5)}
    first, cursor = library.documents.list(tenant_id="t1", limit=2)
    second, _ = library.documents.list(tenant_id="t1", limit=5, cursor=cursor)

    assert sorted(each.id for each in (*first, *second)) == sorted(created)


def test_a_list_can_be_narrowed(library: Library) -> None:
    other = library.collections.create("t1", "other").id
    report = library.index("words", filename="Report_2024.pdf", metadata={"year": 2024})
    waiting = library.upload("w", filename="note.txt", collection_id=other)

    def found(**narrow: object) -> set[str]:
        page, _ = library.documents.list(tenant_id="t1", limit=10, **narrow)  # type: ignore[arg-type]
        return {each.id for each in page}

    assert found() == {report.id, waiting.id}
    assert found(collection_id=other) == {waiting.id}
    assert found(collections=(other,)) == {waiting.id}
    assert found(collections=()) == set()
    assert found(status=DocumentStatus.INDEXED) == {report.id}
    assert found(searchable=True) == {report.id}
    assert found(searchable=False) == {waiting.id}
    assert found(q="report_") == {report.id}
    assert found(q="e_t") == set(), "an underscore is no wildcard"
    assert found(filter=Comparison("year", "$gte", 2024)) == {report.id}


@pytest.mark.parametrize(
    "cursor", ["", "!", "bm9wZQ", "WzFd", "WyJhIiwgImIiXQ", "W051bGwsICJiIl0", "\ud800", "[" * 9999]
)
def test_a_cursor_from_elsewhere_is_refused(library: Library, cursor: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        library.documents.list(tenant_id="t1", limit=3, cursor=cursor)
    assert caught.value.param == "cursor"


def test_metadata_can_be_replaced(library: Library) -> None:
    created = library.upload(metadata={"a": 1})

    assert library.documents.update_metadata(created.id, {"b": None}, tenant_id="t1").metadata == {"b": None}
    assert library.get(created.id).metadata == {"b": None}


def test_retry_queues_a_failed_document_and_no_other(library: Library) -> None:
    created = library.upload()
    with pytest.raises(Conflict):
        library.documents.retry(created.id, tenant_id="t1", user_id="u", key_id="k")
    library.jobs.fail(library.claim(), code="no-text", detail="There is no text.")

    retried = library.documents.retry(created.id, tenant_id="t1", user_id="u2", key_id="k2")

    assert (retried.status, retried.error_code, retried.attempts) == (DocumentStatus.QUEUED, None, 0)
    assert library.claim().user_id == "u2"


def test_a_deletion_is_final_and_says_what_else_must_go(library: Library) -> None:
    kept = library.index("kept words")
    gone = library.index("first words", "second words", external_id="x", original="obj_old")
    library.upload("newer", external_id="x", original="obj_new")
    chunks = ChunkRepository(library.database)
    its_keys = chunks.keys_in(Scope("t1", document_ids=(gone.id,)))

    removal = library.documents.delete(gone.id, tenant_id="t1")

    assert (removal.deleted.chunks, removal.deleted.vectors) == (2, 2)
    assert (removal.documents, removal.originals) == (1, ("obj_old", "obj_new"))
    assert removal.keys.tolist() == its_keys.tolist() != []
    assert chunks.search_text("first second words", scope=Scope("t1"), k=9)[0][0] not in its_keys.tolist()
    assert chunks.visible_keys().tolist() == chunks.keys_in(Scope("t1", document_ids=(kept.id,))).tolist()
    with pytest.raises(NotFound):
        library.get(gone.id)
    with pytest.raises(NotFound):
        library.documents.delete(gone.id, tenant_id="t1")
    for table, left in ((chunk, 1), (chunk_vector, 1), (document, 1), (document_version, 1)):
        assert rows(library.database, table) == left


def test_a_deleted_documents_bytes_can_be_uploaded_again(library: Library) -> None:
    gone = library.index("words")
    library.documents.delete(gone.id, tenant_id="t1")

    assert library.index("words").id != gone.id
