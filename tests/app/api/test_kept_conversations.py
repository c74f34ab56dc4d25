"""Conversations are searched, pinned, put into folders and exported over HTTP."""

from collections.abc import Callable

import pytest

from app.server.state import State
from app.types import Role
from tests.app.api.conversing import ANSWER, FIRST, SECOND, Served, serve
from tests.app.api.credentials import key_of

__all__ = ["serve"]


def test_a_search_tells_where_it_found_and_a_list_does_not(serve: Callable[..., Served]) -> None:
    served = serve()
    asked, other = served.begin(), served.begin(title="Other")
    answer = served.ask(FIRST, asked)
    listed = served.client.get("/v1/conversations").json()["data"]
    found = served.client.get("/v1/conversations", params={"q": " PAINTED blue "}).json()["data"]

    assert [(one["id"], one["hit"]) for one in listed] == [(other, None), (asked, None)]
    assert [(one["id"], one["hit"]["place"], one["hit"]["request_id"]) for one in found] == [
        (asked, "answer", answer["id"])
    ]
    assert "painted blue" in found[0]["hit"]["snippet"]
    assert len(served.client.get("/v1/conversations", params={"q": "  "}).json()["data"]) == 2
    assert served.client.get("/v1/conversations", params={"q": "a" * 201}).status_code == 422


def test_others_and_other_tenants_find_nothing(serve: Callable[..., Served], state: State) -> None:
    served = serve()
    served.ask(FIRST, served.begin())
    for stranger in (key_of(state, Role.MEMBER), key_of(state, Role.ADMIN, tenant="rival")):
        found = served.client.get("/v1/conversations", params={"q": "painted"}, headers=stranger).json()
        assert found["data"] == []


def test_a_conversation_is_pinned_and_put_into_a_folder(serve: Callable[..., Served]) -> None:
    served = serve()
    first, second = served.begin(title="A"), served.begin(title="B")
    path = f"/v1/conversations/{first}"
    changed = served.client.patch(path, json={"pinned": True, "folder": " Ships "}).json()

    assert (changed["pinned"], changed["folder"], changed["title"]) == (True, "Ships", "A")
    assert [one["id"] for one in served.client.get("/v1/conversations").json()["data"]] == [first, second]
    assert served.client.patch(path, json={"pinned": False}).json()["folder"] == "Ships"
    assert served.client.patch(path, json={"folder": ""}).json()["folder"] is None
    assert served.client.patch(path, json={"folder": "x" * 61}).status_code == 422


def test_an_export_has_the_passages_with_their_exact_words(serve: Callable[..., Served], state: State) -> None:
    served = serve()
    conversation = served.begin(title="Ships")
    answer = served.ask(FIRST, conversation)
    served.ask(SECOND, conversation)
    response = served.client.get(f"/v1/conversations/{conversation}/export")

    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    assert response.headers["content-disposition"] == f'attachment; filename="{conversation}.md"'
    assert response.text.startswith("# Ships\n")
    assert f"## {FIRST}\n\n{ANSWER.removesuffix('.')}" in response.text
    cited = answer["citations"][0]
    assert f"**{cited['filename']}**" in response.text.replace("\\", "")
    for line in cited["cited_text"].splitlines():
        assert f"    > {line}".rstrip() in response.text.replace("\\", "")


@pytest.mark.parametrize(("accept", "status"), [("text/markdown", 200), ("*/*", 200), ("application/pdf", 406)])
def test_an_export_is_markdown_or_is_refused(serve: Callable[..., Served], accept: str, status: int) -> None:
    served = serve()
    response = served.client.get(f"/v1/conversations/{served.begin()}/export", headers={"Accept": accept})

    assert response.status_code == status


def test_only_who_may_read_a_conversation_may_export_it(serve: Callable[..., Served], state: State) -> None:
    served = serve()
    ann, ben = key_of(state, Role.READER), key_of(state, Role.MEMBER)
    made = served.client.post("/v1/conversations", headers=ann).json()["id"]
    path = f"/v1/conversations/{made}/export"

    assert served.client.get(path, headers=ben).status_code == 404
    served.client.patch(f"/v1/conversations/{made}", json={"shared": True}, headers=ann)
    assert served.client.get(path, headers=ben).status_code == 200
    for stranger in (key_of(state, Role.READER, collections=("col_1",)), key_of(state, Role.ADMIN, tenant="rival")):
        assert served.client.get(path, headers=stranger).status_code == 404
