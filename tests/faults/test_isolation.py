"""Tenants, and limited keys within one, never see each other's data (cases E2, E3, E4, E5).

The quick form of `python -m tests.bench.service.isolation`, which makes ten thousand requests.
"""

import json
import random
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.types import Role
from tests.bench.service.isolation import seen, standing, trespass
from tests.bench.service.tenancies import ID, SHARED, Caller, Owner, Tenancies, tenancies
from tests.postgres import empty_postgres

NEVER = "01m8000000zzzzzzzzzzzzzzzz"
"""The end of an id that nobody was given."""


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenancies]:
    with tenancies(tmp_path_factory.mktemp("tenancies") / "data", tenants=3, documents=2) as made:
        yield made


@pytest.fixture(scope="module")
def on_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenancies]:
    with ExitStack() as stack:
        url, folder = stack.enter_context(empty_postgres()), tmp_path_factory.mktemp("tenancies")
        yield stack.enter_context(tenancies(folder / "data", database_url=url, tenants=3, documents=2))


@pytest.fixture(params=["sqlite", "postgres"])
def made(request: pytest.FixtureRequest) -> Tenancies:
    """Both stay for the whole module: tests come in random order, and each takes seconds to settle in."""
    found = request.getfixturevalue(f"on_{request.param}")
    assert isinstance(found, Tenancies)
    return found


def caller_of(made: Tenancies, tenant: int, role: Role = Role.ADMIN, part: str | None = None) -> Caller:
    wanted = made.tenants[tenant], role, part
    return next(caller for caller in made.callers if (caller.tenant, caller.role, caller.part) == wanted)


def searched(made: Tenancies, caller: Caller, **body: object) -> list[dict[str, Any]]:
    response = made.client.post("/v1/search", json={"query": SHARED[0], **body}, headers=caller.headers)
    assert response.status_code == 200, response.text
    assert not seen(made, caller, response, sent=set())[0]
    found: list[dict[str, Any]] = response.json()["data"]
    return found


def chunks_of(found: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """The chunks in their order, with the one score that no other tenant's upload can change.

    The lexical score has a chunk's average length in it, which all tenants share (see docs/BENCHMARKS.md), and an
    upload of another test may be indexed between two searches.
    """
    return [(hit["chunk_id"], hit["scores"]["dense"]) for hit in found]


@given(seed=st.integers(0, 2**32))
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
def test_e2_random_requests_on_every_route_are_answered_with_nothing_foreign(made: Tenancies, seed: int) -> None:
    before = standing(made)

    findings = trespass(made, random.Random(seed), 30)

    assert findings.leaks == []
    after = standing(made)
    assert {where: {one: after[where].get(one) for one in things} for where, things in before.items()} == before


def test_e2_the_search_for_leaks_finds_a_planted_one(made: Tenancies) -> None:
    one, other = caller_of(made, 0), caller_of(made, 1)
    response = made.client.get("/v1/documents?limit=1", headers=one.headers)

    foreign, own = seen(made, other, response, sent=set())

    assert any(mark.startswith("Zq") for mark in foreign)
    assert any(mark.startswith("doc_") for mark in foreign)
    assert not {mark for mark in own if not mark.startswith("req_")}
    again = made.client.get("/v1/documents?limit=1", headers=one.headers)
    assert seen(made, one, again, sent=set())[0] == set()


def test_e2_another_tenants_id_is_answered_as_one_that_nobody_was_given(made: Tenancies) -> None:
    """Paired on every route with an id in its path, so that no answer tells which ids there are."""
    rival, victim = caller_of(made, 1), made.tenants[0]
    paths = made.client.get("/openapi.json").json()["paths"]
    kinds = {"document_id": "doc_", "collection_id": "col_", "job_id": "job_", "conversation_id": "conv_"}
    kinds |= {"key_id": "key_", "budget_id": "budget_", "file_id": "doc_", "vector_store_id": "col_", "id": "req_"}
    compared = 0
    for path, methods in paths.items():
        names = re.findall(r"{(\w+)}", path)
        for method in {"get", "post", "put", "patch", "delete"} & methods.keys() if names else ():
            foreign = never = path
            for name in names:
                kind = kinds.get(name, "req_")
                foreign = foreign.replace(f"{{{name}}}", made.marks(kind=kind, tenant=victim)[0])
                never = never.replace(f"{{{name}}}", f"{kind}{NEVER}")
            answers = []
            for asked in (foreign, never):
                response = made.client.request(method, asked, headers=rival.headers)
                body = ID.sub("ID", response.text).replace(asked, "PATH")
                answers.append((response.status_code, body, response.headers.get("content-type")))
            assert answers[0] == answers[1], (method, path)
            assert answers[0][0] not in {200, 201, 202, 204, 500}, (method, path)
            compared += 1
    assert compared > 30


@pytest.mark.parametrize("field", ["collection_ids", "document_ids"])
def test_e2_another_tenants_id_in_a_body_finds_nothing(made: Tenancies, field: str) -> None:
    rival, kind = caller_of(made, 1), "col_" if field == "collection_ids" else "doc_"
    mark = made.marks(kind=kind, tenant=made.tenants[0])[0]
    answers = []
    for given_id in (mark, f"{kind}{NEVER}"):
        for path, body in (("/v1/search", {"query": SHARED[0]}), ("/v1/ask", {"question": SHARED[0]})):
            response = made.client.post(path, json={**body, field: [given_id]}, headers=rival.headers)
            assert not seen(made, rival, response, sent={mark})[0]
            answers.append((response.status_code, response.json().get("data"), response.json().get("citations")))
    assert answers[:2] == answers[2:]


def test_e2_another_tenants_conversation_is_not_gone_on_with(made: Tenancies) -> None:
    rival = caller_of(made, 1)
    conversation = made.marks(kind="conv_", tenant=made.tenants[0])[0]

    response = made.client.post(
        "/v1/ask", json={"question": "And then?", "conversation_id": conversation}, headers=rival.headers
    )

    assert response.status_code == 404


def test_e2_another_tenants_cursor_leads_through_the_own_list(made: Tenancies) -> None:
    rival, victim = caller_of(made, 1), made.tenants[0]

    response = made.client.get("/v1/documents", params={"cursor": made.cursors[victim][0]}, headers=rival.headers)

    assert response.status_code == 200
    assert not seen(made, rival, response, sent=set())[0]


def test_e2_another_tenants_idempotency_key_replays_nothing(made: Tenancies) -> None:
    body = {"query": SHARED[0], "top_k": 3}
    answers: dict[int, list[bool]] = {}
    for tenant in (0, 1, 1):
        caller = caller_of(made, tenant)
        headers = {**caller.headers, "Idempotency-Key": "the same"}
        response = made.client.post("/v1/search", json=body, headers=headers)
        assert not seen(made, caller, response, sent=set())[0]
        answers.setdefault(tenant, []).append("idempotent-replayed" in response.headers)
    assert answers == {0: [False], 1: [False, True]}, "paired: the own key does replay"


@pytest.mark.parametrize("part", ["left", "right"])
def test_e2_a_key_limited_to_one_collection_sees_nothing_of_the_other(made: Tenancies, part: str) -> None:
    role = Role.MEMBER if part == "left" else Role.READER
    caller = caller_of(made, 0, role, part)
    for path in ("/v1/documents", "/v1/collections", "/v1/jobs", "/v1/conversations", "/v1/models", "/v1/usage"):
        response = made.client.get(path, headers=caller.headers)
        assert response.status_code == 200
        foreign, own = seen(made, caller, response, sent=set())
        assert not foreign, path
        assert own, path
    assert searched(made, caller, top_k=200)


def test_e2_a_limited_administrator_reads_no_report_and_manages_only_keys_within_its_limit(made: Tenancies) -> None:
    caller = caller_of(made, 0, Role.ADMIN, "left")
    paths = made.client.get("/openapi.json").json()["paths"]
    for path in paths:
        if path.startswith("/v1/admin/") and "get" in paths[path] and "{" not in path:
            response = made.client.get(path, params={"start_time": 0}, headers=caller.headers)
            assert response.status_code == (200 if path == "/v1/admin/keys" else 403), path
            assert not {mark for mark in seen(made, caller, response, sent=set())[0] if not mark.startswith("Zq")}
    wider = made.client.post("/v1/admin/keys", json={"name": "wider", "role": "admin"}, headers=caller.headers)
    assert wider.status_code in {403, 422}


def test_e2_public_routes_and_refusals_contain_no_tenants_data(made: Tenancies) -> None:
    nobody = Caller("nobody", "nobody", Role.READER, None, {})
    for path in ("/metrics", "/readyz", "/healthz", "/openapi.json", "/v1/documents", "/nowhere"):
        response = made.client.get(path)
        assert not {mark for mark in seen(made, nobody, response, sent=set())[0] if mark in made.owners}, path


CONDITIONS: st.SearchStrategy[object] = st.deferred(
    lambda: (
        st.builds(
            lambda field, op, value: {field: {op: value}},
            st.sampled_from(["tenant_id", "collection_id", "by", "year", "document.tenant_id", "__class__", "a'--"]),
            st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]),
            st.sampled_from(["0", 0, 1e308, None, True, "' OR 1=1 --", "%"]),
        )
        | st.builds(lambda op, inner: {op: inner}, st.sampled_from(["$and", "$or"]), st.lists(CONDITIONS, min_size=1))
        | st.builds(lambda inner: {"$not": inner}, CONDITIONS)
    )
)


@given(condition=CONDITIONS, tenant=st.integers(0, 2))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_e3_no_filter_widens_what_is_searched_or_listed(made: Tenancies, condition: object, tenant: int) -> None:
    caller = caller_of(made, tenant)
    responses = [
        made.client.post("/v1/search", json={"query": SHARED[0], "filter": condition}, headers=caller.headers),
        made.client.get("/v1/documents", params={"filter": json.dumps(condition)}, headers=caller.headers),
    ]
    for response in responses:
        assert response.status_code in {200, 422}, response.text
        assert not seen(made, caller, response, sent=set())[0]


def test_e3_a_filter_on_the_tenant_is_one_on_metadata_that_nobody_has(made: Tenancies) -> None:
    caller = caller_of(made, 1)

    assert searched(made, caller, filter={"tenant_id": made.tenants[0]}) == []
    filtered = searched(made, caller, filter={"tenant_id": {"$ne": made.tenants[1]}})
    assert chunks_of(filtered) == chunks_of(searched(made, caller))


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_e4_asked_for_more_than_there_is_it_finds_the_own_and_no_more(made: Tenancies, mode: str) -> None:
    caller = caller_of(made, 0)
    documents = made.client.get("/v1/documents?limit=500", headers=caller.headers).json()["data"]

    found = searched(made, caller, top_k=200, mode=mode)

    assert {hit["document_id"] for hit in found} == {document["id"] for document in documents}
    assert len(found) <= sum(document["counts"]["chunks"] for document in documents)


def test_e4_what_another_tenant_uploads_changes_no_hit_and_no_order(made: Tenancies) -> None:
    """The words' rarity is the tenant's own."""
    caller, rival = caller_of(made, 0), caller_of(made, 2)
    before = searched(made, caller, top_k=50)
    for number in range(3):
        text = f"{SHARED[0]} Forty ships, once more. {made.canary(Owner(rival.tenant), 'later', number)}"
        body = {"text": text, "filename": f"later{number}.txt", "wait": 30}
        assert made.client.post("/v1/documents", json=body, headers=rival.headers).json()["status"] == "indexed"

    after = searched(made, caller, top_k=50)

    assert chunks_of(after) == chunks_of(before)


def test_e5_a_question_another_tenant_asked_is_charged_as_a_new_one(made: Tenancies) -> None:
    """Paired: asked again by the same tenant it costs nothing, so the cache is on."""
    query = {"query": "Which ships does nobody else ask about?"}

    def charged(tenant: int) -> int:
        response = made.client.post("/v1/search", json=query, headers=caller_of(made, tenant).headers)
        tokens: int = response.json()["usage"]["embedding_tokens"]
        return tokens

    first, other, again = charged(0), charged(1), charged(0)

    assert first == other > 0
    assert again == 0
