"""OpenAI's own client against files and vector stores: file search as people write it."""

import io
from collections.abc import Iterator

import openai
import pytest

from app.api.openai.vector_stores import translated
from app.types import Role
from retrieval.errors import InvalidFilter
from tests.app.api.openai.openai_server import Service
from tests.originals import held
from tests.server import ADMIN_KEY

MILL = b"A mill at the river grinds rye on Mondays. Its wheel was mended in 1912 by Ann Carver."
POLL = 20  # milliseconds


@pytest.fixture
def client(openai_service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{openai_service.url}/v1", api_key=ADMIN_KEY, max_retries=0) as client:
        yield client


def upload(client: openai.OpenAI, name: str = "mill.txt", content: bytes = MILL) -> str:
    return client.files.create(file=(name, content), purpose="assistants").id


def test_a_file_is_kept_unsearched_until_it_is_attached_and_again_after(openai_service, client):
    store = client.vector_stores.create(name="mills", metadata={"team": "water"})
    before = held(openai_service.state.corpus.files)
    file_id = upload(client)
    (original,) = held(openai_service.state.corpus.files) - before
    assert client.files.content(file_id).read() == MILL
    assert client.files.wait_for_processing(file_id).status == "processed"
    assert client.vector_stores.search(store.id, query="rye mill").data == []

    attached = client.vector_stores.files.create_and_poll(
        file_id, vector_store_id=store.id, attributes={"year": 1912, "wet": True}, poll_interval_ms=POLL
    )
    assert (attached.id, attached.status, attached.attributes) == (file_id, "completed", {"year": 1912, "wet": True})
    [hit] = client.vector_stores.search(store.id, query="rye mill").data
    assert (hit.file_id, hit.filename, hit.content[0].text) == (file_id, "mill.txt", MILL.decode())
    assert client.files.retrieve(file_id).bytes == len(MILL)
    filled = client.vector_stores.retrieve(store.id)
    assert (filled.status, filled.usage_bytes, filled.file_counts.completed) == ("completed", len(MILL), 1)

    assert client.vector_stores.files.delete(file_id, vector_store_id=store.id).deleted
    assert client.vector_stores.search(store.id, query="rye mill").data == []
    assert held(openai_service.state.corpus.files) == {*before, original}, "it is not copied"
    assert client.files.content(file_id).read() == MILL

    assert client.files.delete(file_id).deleted
    assert held(openai_service.state.corpus.files) == before
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file_id)
    assert client.vector_stores.delete(store.id).deleted


def test_a_file_is_in_one_vector_store_at_a_time(client):
    one, other = client.vector_stores.create(name="one"), client.vector_stores.create(name="other")
    file_id = upload(client)
    first = client.vector_stores.files.create(one.id, file_id=file_id)

    assert client.vector_stores.files.create(one.id, file_id=file_id).id == first.id
    with pytest.raises(openai.ConflictError, match=one.id):
        client.vector_stores.files.create(other.id, file_id=file_id)
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.files.retrieve(file_id, vector_store_id=other.id)
    assert client.vector_stores.delete(one.id).deleted
    assert client.vector_stores.files.create(other.id, file_id=file_id).vector_store_id == other.id


def test_batches_upload_poll_list_and_cancel(client):
    store = client.vector_stores.create(name="batches")
    pages = [io.BytesIO(MILL + str(number).encode()) for number in range(3)]
    for number, page in enumerate(pages):
        page.name = f"{number}.txt"
    batch = client.vector_stores.file_batches.upload_and_poll(store.id, files=pages, poll_interval_ms=POLL)

    assert (batch.status, batch.file_counts.completed, batch.file_counts.total) == ("completed", 3, 3)
    listed = [
        file.id for file in client.vector_stores.file_batches.list_files(batch.id, vector_store_id=store.id, limit=2)
    ]
    assert len(listed) == len(set(listed)) == 3
    assert client.vector_stores.file_batches.cancel(batch.id, vector_store_id=store.id).status == "cancelled"
    assert client.vector_stores.files.retrieve(listed[0], vector_store_id=store.id).status == "completed"
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.file_batches.create(store.id, file_ids=[upload(client), "doc_nowhere"])
    assert client.vector_stores.retrieve(store.id).file_counts.total == 3


def test_a_file_nothing_can_be_read_of_is_refused_or_fails_with_the_reason(client):
    store = client.vector_stores.create(name="broken")
    with pytest.raises(openai.APIStatusError) as raised:
        upload(client, "movie.bin", b"\x00\x01\x02\x03" * 100)
    assert raised.value.status_code == 415
    broken = upload(client, "blank.txt", b" \n \n")
    file = client.vector_stores.files.create_and_poll(broken, vector_store_id=store.id, poll_interval_ms=POLL)

    assert file.status == "failed"
    assert file.last_error is not None and file.last_error.code == "invalid_file"
    assert client.files.retrieve(broken).status == "error"


def test_lists_page_in_either_direction_while_items_go(client):
    store = client.vector_stores.create(name="pages")
    ids = [upload(client, f"{number}.txt", MILL + b" " * number) for number in range(5)]
    for file_id in ids:
        client.vector_stores.files.create(store.id, file_id=file_id)
    files = client.vector_stores.files

    assert [file.id for file in files.list(store.id, limit=2, order="asc")] == ids
    assert [file.id for file in files.list(store.id, limit=2)] == ids[::-1]
    page = files.list(store.id, limit=2, order="asc", before=ids[3])
    assert ([file.id for file in page.data], page.has_more) == (ids[1:3], True)
    gone = []
    for file in client.files.list(limit=2, order="asc", purpose="assistants"):
        if file.id in ids:
            client.files.delete(file.id)
            gone.append(file.id)
    assert gone == ids
    stores = [item.id for item in client.vector_stores.list(limit=1)]
    assert store.id in stores and len(stores) == len(set(stores))


def test_search_filters_by_attributes_scores_and_several_queries(openai_service, client):
    store = client.vector_stores.create(name="years")
    old, new = upload(client, "old.txt"), upload(client, "new.txt", b"Rye is ground by the new mill at the lake.")
    files = [{"file_id": old, "attributes": {"year": 1912}}, {"file_id": new, "attributes": {"year": 2025}}]
    client.vector_stores.file_batches.create_and_poll(store.id, files=files, poll_interval_ms=POLL)

    def found(**options: object) -> set[str]:
        return {hit.file_id for hit in client.vector_stores.search(store.id, **{"query": "rye mill", **options}).data}

    newer = {"type": "gte", "key": "year", "value": 2000}
    older = {"type": "nin", "key": "year", "value": [2025]}
    assert found() == {old, new}
    assert found(filters=newer) == {new}
    assert found(filters={"type": "and", "filters": [newer, older]}) == set()
    assert found(filters={"type": "or", "filters": [newer, older]}) == {old, new}
    assert found(query=["wheel mended Carver", "new mill lake"], max_num_results=2) == {old, new}
    assert found(ranking_options={"score_threshold": 1.0, "ranker": "none"}) <= {old, new}
    assert len(client.vector_stores.search(store.id, query="rye mill", max_num_results=1).data) == 1
    client.vector_stores.files.update(old, vector_store_id=store.id, attributes={"year": 2026})
    assert found(filters=newer) == {old, new}
    [text] = client.vector_stores.files.content(old, vector_store_id=store.id).data
    assert text.text == MILL.decode()


def test_unsupported_vector_store_parameters_are_refused_by_name(client):
    store = client.vector_stores.create(name="refusing")
    file_id = upload(client)
    static = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0}}
    for param, call in {
        "expires_after": lambda: client.vector_stores.create(expires_after={"anchor": "last_active_at", "days": 1}),
        "chunking_strategy": lambda: client.vector_stores.files.create(
            store.id, file_id=file_id, chunking_strategy=static
        ),
        "purpose": lambda: client.files.create(file=("a.txt", MILL), purpose="fine-tune"),
    }.items():
        with pytest.raises(openai.BadRequestError) as raised:
            call()
        assert raised.value.param == param
    with pytest.raises(openai.BadRequestError, match="expires_after"):
        client.files.create(
            file=("a.txt", MILL), purpose="assistants", expires_after={"anchor": "created_at", "seconds": 3600}
        )
    with pytest.raises(openai.ConflictError):
        client.vector_stores.create(name="refusing")
    renamed = client.vector_stores.update(store.id, name="renamed", metadata={"a": "b"})
    assert (renamed.name, renamed.metadata) == ("renamed", {"a": "b"})


def test_other_tenants_and_keys_of_other_collections_see_no_file(openai_service, client):
    mine, theirs = client.vector_stores.create(name="mine"), client.vector_stores.create(name="theirs")
    loose, attached = upload(client), upload(client)
    client.vector_stores.files.create(mine.id, file_id=attached)
    rival = client.with_options(api_key=openai_service.key(Role.ADMIN, tenant="rival"))
    limited = client.with_options(api_key=openai_service.key(Role.MEMBER, collections=(theirs.id,)))

    for stranger in (rival, limited):
        for file_id in (loose, attached):
            for act in (stranger.files.retrieve, stranger.files.content, stranger.files.delete):
                with pytest.raises(openai.NotFoundError):
                    act(file_id)
            assert file_id not in {file.id for file in stranger.files.list()}
        with pytest.raises(openai.NotFoundError):
            stranger.vector_stores.search(mine.id, query="rye mill")
        with pytest.raises(openai.NotFoundError):
            stranger.vector_stores.files.create(mine.id, file_id=loose)
    own = upload(limited)
    done = limited.vector_stores.files.upload_and_poll(
        vector_store_id=theirs.id, file=("own.txt", MILL), poll_interval_ms=POLL
    )
    assert done.status == "completed" and limited.files.retrieve(own).id == own
    with pytest.raises(openai.PermissionDeniedError):
        limited.vector_stores.create(name="more")


@pytest.mark.parametrize(
    "raw",
    [
        "year",
        {"type": "eq", "key": "year"},
        {"type": "like", "key": "a", "value": "b"},
        {"type": "eq", "key": "$or", "value": 1},
        {"type": "and", "filters": {}},
        {"type": "eq", "key": "a", "value": 1, "more": 1},
    ],
)
def test_unknown_filters_are_refused(raw):
    with pytest.raises(InvalidFilter):
        translated(raw)


def test_deeply_nested_filters_are_refused():
    raw: dict[str, object] = {"type": "eq", "key": "a", "value": 1}
    for _ in range(100):
        raw = {"type": "and", "filters": [raw]}
    with pytest.raises(InvalidFilter, match="nested"):
        translated(raw)
