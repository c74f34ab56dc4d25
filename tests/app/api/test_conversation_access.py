"""Which conversations a key may list and read, and which of their contents."""

from collections.abc import Callable

import pytest

from app.server.state import State
from app.types import Role
from tests.app.api.conversing import FIRST, SECOND, Served, serve
from tests.app.api.credentials import key_of

__all__ = ["serve"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_that_is_not_there_is_404_before_anything_is_spent(
    serve: Callable[..., Served], stream: bool
) -> None:
    served = serve()
    body = {"question": FIRST, "conversation_id": "conv_nowhere", "stream": stream}
    response = served.client.post("/v1/ask", json=body)

    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert (served.engine.requests, served.search.questions) == ([], [])


def test_others_conversations_do_not_exist_and_an_administrator_sees_the_tenants(
    serve: Callable[..., Served], state: State
) -> None:
    served = serve()
    ann, ben = key_of(state, Role.READER), key_of(state, Role.MEMBER)
    rival = key_of(state, Role.ADMIN, tenant="rival")
    made = served.client.post("/v1/conversations", headers=ann).json()["id"]
    for headers in (ben, rival):
        assert served.client.get(f"/v1/conversations/{made}", headers=headers).status_code == 404
        assert served.client.delete(f"/v1/conversations/{made}", headers=headers).status_code == 404
        body = {"question": FIRST, "conversation_id": made}
        assert served.client.post("/v1/ask", json=body, headers=headers).status_code == 404
        assert served.client.get("/v1/conversations", headers=headers).json()["data"] == []

    assert served.client.get(f"/v1/conversations/{made}").status_code == 200
    assert [one["id"] for one in served.client.get("/v1/conversations").json()["data"]] == [made]
    assert served.client.delete(f"/v1/conversations/{made}", headers=ann).json() == {"id": made, "deleted": True}
    assert served.client.get(f"/v1/conversations/{made}", headers=ann).status_code == 404


def test_a_shared_conversation_is_read_as_its_owner_reads_it_and_not_gone_on_with(
    serve: Callable[..., Served], state: State
) -> None:
    served = serve()
    ann, ben = key_of(state, Role.READER), key_of(state, Role.MEMBER)
    made = served.client.post("/v1/conversations", headers=ann).json()["id"]
    path = f"/v1/conversations/{made}"
    served.client.post("/v1/ask", json={"question": FIRST, "conversation_id": made}, headers=ann)
    changed = served.client.patch(path, json={"shared": True, "title": "Ships"}, headers=ann).json()
    own = served.client.get(path, headers=ann).json()

    assert (changed["shared"], changed["title"]) == (True, "Ships")
    assert served.client.get(path, headers=ben).json() == own
    assert own["data"][0]["citations"]
    for method, body in (("PATCH", {"shared": False}), ("DELETE", None)):
        assert served.client.request(method, path, json=body, headers=ben).status_code == 403
    spent = len(served.engine.requests)
    follow_up = {"question": SECOND, "conversation_id": made}
    assert served.client.post("/v1/ask", json=follow_up, headers=ben).status_code == 403
    assert len(served.engine.requests) == spent
    for stranger in (key_of(state, Role.READER, collections=("col_1",)), key_of(state, Role.ADMIN, tenant="rival")):
        assert served.client.get(path, headers=stranger).status_code == 404
        assert served.client.patch(path, json={}, headers=stranger).status_code == 404

    served.client.patch(path, json={"shared": False}, headers=ann)
    assert served.client.get(path, headers=ben).status_code == 404


def test_what_a_key_finds_stays_out_of_a_conversation_of_a_key_that_may_not_see_it(
    serve: Callable[..., Served], state: State
) -> None:
    served = serve()
    limited = key_of(state, Role.READER, collections=("col_1",))
    theirs = served.client.post("/v1/conversations", headers=limited).json()["id"]
    open_one = served.client.post("/v1/conversations", headers=key_of(state, Role.READER)).json()["id"]

    response = served.client.post("/v1/ask", json={"question": FIRST, "conversation_id": theirs})
    assert response.status_code == 409
    assert served.client.get(f"/v1/conversations/{open_one}", headers=limited).status_code == 404
    assert [one["id"] for one in served.client.get("/v1/conversations", headers=limited).json()["data"]] == [theirs]


def test_pages_of_the_list_follow_each_other(serve: Callable[..., Served]) -> None:
    served = serve()
    made = [served.begin(title=f"T{number}", metadata={"n": number}) for number in range(3)]
    first = served.client.get("/v1/conversations", params={"limit": 2}).json()
    rest = served.client.get("/v1/conversations", params={"limit": 2, "cursor": first["next_cursor"]}).json()

    assert [one["id"] for one in first["data"] + rest["data"]] == made[::-1]
    assert (first["has_more"], rest["has_more"], rest["next_cursor"]) == (True, False, None)
    assert rest["data"][0]["metadata"] == {"n": 0}
