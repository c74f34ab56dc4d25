"""Feedback over HTTP: on one's own answers, within bounds, told in the conversation and to administrators."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from app.server.state import State
from app.types import Role
from tests.app.api.conversing import FIRST, SECOND, Served, TalkingEngine
from tests.app.api.credentials import key_of, session_of

BAD = {"score": -1, "comment": "It names the wrong line."}
NOBODY = "/v1/requests/req_nowhere/feedback"


@pytest.fixture
def served(state: State) -> Iterator[Served]:
    served = Served(state, TalkingEngine(), history_tokens=500, model=False)
    with served.client:
        yield served


def asked(served: Served, headers: dict[str, str] | None = None, **fields: object) -> str:
    """The path of an answer's feedback, after it was asked."""
    response = served.client.post("/v1/ask", json={"question": FIRST, **fields}, headers=headers)
    assert response.status_code == 200, response.text
    return f"/v1/requests/{response.json()['id']}/feedback"


def counted(served: Served) -> dict[str, float]:
    """How often each verdict was given."""
    samples = [sample for family in served.state.telemetry.metrics.registry.collect() for sample in family.samples]
    return {one.labels["verdict"]: one.value for one in samples if one.name == "footnote_feedback_total"}


def test_what_is_said_is_told_back_and_replaced_by_what_is_said_again(served: Served) -> None:
    path = asked(served)
    first = served.client.post(path, json=BAD)
    again = served.client.post(path, json={"score": 0.5})

    assert (first.status_code, again.status_code) == (201, 200)
    body = first.json()
    assert body == {
        "object": "feedback",
        "request_id": path.split("/")[3],
        "user_id": body["user_id"],
        **BAD,
        "created_at": body["created_at"],
        "updated_at": body["created_at"],
    }
    assert again.json() == {**body, "score": 0.5, "comment": None, "updated_at": again.json()["updated_at"]}
    (listed,) = served.client.get("/v1/admin/feedback").json()["data"]
    assert listed == {**again.json(), "conversation_id": None, "question": None, "user_name": "admin"}


def test_a_conversation_turn_shows_the_callers_own_feedback_only(served: Served, state: State) -> None:
    ann, ben = key_of(state, Role.READER), key_of(state, Role.MEMBER)
    conversation = served.client.post("/v1/conversations", headers=ann).json()["id"]
    path = asked(served, ann, conversation_id=conversation)
    asked(served, ann, conversation_id=conversation, question=SECOND)
    served.client.patch(f"/v1/conversations/{conversation}", json={"shared": True}, headers=ann)
    assert served.client.post(path, json=BAD, headers=ann).status_code == 201

    def told(headers: dict[str, str] | None = None) -> list[object]:
        turns = served.client.get(f"/v1/conversations/{conversation}", headers=headers).json()["data"]
        return [turn["feedback"] for turn in turns]

    assert told(ann) == [BAD, None]
    assert told() == told(ben) == [None, None]
    assert served.client.post(path, json={"score": 1}).status_code == 201  # an administrator
    assert (told(), told(ann)) == ([{"score": 1, "comment": None}, None], [BAD, None])
    assert served.client.delete(path, headers=ann).json() == {"request_id": path.split("/")[3], "deleted": True}
    assert (told(), told(ann)) == ([{"score": 1, "comment": None}, None], [None, None])


def test_a_chat_completion_has_feedback_by_its_id(served: Served) -> None:
    body = {"model": "footnote", "messages": [{"role": "user", "content": FIRST}]}
    completion = served.client.post("/v1/chat/completions", json=body).json()

    assert served.client.post(f"/v1/requests/{completion['id']}/feedback", json=BAD).status_code == 201


def test_others_answers_are_404_as_those_there_are_not(served: Served, state: State) -> None:
    ann = key_of(state, Role.READER)
    path = asked(served, ann)
    limited = key_of(state, Role.READER, collections=("col_1",))  # the same user's
    strangers = [
        key_of(state, Role.MEMBER),
        limited,
        key_of(state, Role.ADMIN, collections=("col_1",)),
        key_of(state, Role.ADMIN, tenant="rival"),
    ]
    for stranger in strangers:
        for method, sent in (("POST", BAD), ("DELETE", None)):
            answers = [served.client.request(method, one, json=sent, headers=stranger) for one in (path, NOBODY)]
            assert [one.status_code for one in answers] == [404, 404]
            known, unknown = ({**one.json(), "instance": None} for one in answers)
            assert known == unknown
    assert served.client.get("/v1/admin/feedback").json()["data"] == []

    own = asked(served, limited)
    assert served.client.post(own, json=BAD, headers=limited).status_code == 201
    assert served.client.post(path, json=BAD, headers=session_of(state, Role.READER)).status_code == 201


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{}",
        '{"comment": "x"}',
        '{"score": 1.01}',
        '{"score": -1.01}',
        '{"score": 1e400}',
        '{"score": NaN}',
        '{"score": "1"}',
        '{"score": true}',
        '{"score": null}',
        '{"score": 1, "comment": 5}',
        '{"score": 1, "comment": "a\\u0000b"}',
        '{"score": 1, "stars": 5}',
        '{"score": 1, "comment": "' + "x" * 4001 + '"}',
    ],
    ids=lambda body: body[:40],
)
def test_a_malformed_feedback_body_is_422_and_keeps_the_earlier_feedback(served: Served, body: str) -> None:
    path = asked(served)
    served.client.post(path, json=BAD)
    refused = served.client.post(path, content=body, headers={"Content-Type": "application/json"})

    assert refused.status_code == 422, refused.text
    assert refused.headers["content-type"] == "application/problem+json"
    assert [one["score"] for one in served.client.get("/v1/admin/feedback").json()["data"]] == [-1]


@pytest.mark.parametrize("body", [{"score": 1, "comment": "😀" * 4000}, {"score": -1.0}, {"score": 0, "comment": ""}])
def test_feedback_at_the_limits_of_score_and_comment_is_accepted(served: Served, body: dict[str, object]) -> None:
    said = served.client.post(asked(served), json=body)

    assert said.status_code == 201
    assert (said.json()["score"], said.json()["comment"]) == (body["score"], body.get("comment") or None)


def test_administrators_list_what_is_bad_page_by_page(served: Served, state: State) -> None:
    conversation = served.begin()
    answers = [served.ask(FIRST, conversation)["id"] for _ in range(3)]
    for request_id, score in zip(answers, (-1, 1, -0.5), strict=True):
        served.client.post(f"/v1/requests/{request_id}/feedback", json={"score": score})

    def listed(**params: Any) -> dict[str, Any]:
        found: dict[str, Any] = served.client.get("/v1/admin/feedback", params=params).json()
        return found

    def ids(page: dict[str, Any]) -> list[str]:
        return [one["request_id"] for one in page["data"]]

    assert ids(listed()) == answers[::-1]
    assert ids(listed(score_below=0)) == [answers[2], answers[0]]
    first = listed(score_below=0, limit=1)
    rest = listed(score_below=0, limit=1, cursor=first["next_cursor"])
    assert (ids(first), ids(rest)) == ([answers[2]], [answers[0]])
    assert (first["has_more"], rest["has_more"], rest["next_cursor"]) == (True, False, None)
    shown = {(one["conversation_id"], one["question"]) for one in listed()["data"]}
    assert shown == {(conversation, FIRST)}
    for params in ({"score_below": "nan"}, {"score_below": 2}, {"cursor": "x"}, {"limit": 0}):
        assert served.client.get("/v1/admin/feedback", params=params).status_code == 422


def test_the_list_is_one_tenants_and_no_limited_keys(served: Served, state: State) -> None:
    served.client.post(asked(served), json=BAD)

    rival = key_of(state, Role.ADMIN, tenant="rival")
    assert served.client.get("/v1/admin/feedback", headers=rival).json()["data"] == []
    limited = key_of(state, Role.ADMIN, collections=("col_1",))
    assert served.client.get("/v1/admin/feedback", headers=limited).status_code == 403


def test_a_deleted_conversation_takes_its_feedback_along(served: Served) -> None:
    conversation = served.begin()
    served.client.post(asked(served, conversation_id=conversation), json=BAD)
    served.client.post(asked(served), json={"score": 1})
    served.client.delete(f"/v1/conversations/{conversation}")

    assert [one["score"] for one in served.client.get("/v1/admin/feedback").json()["data"]] == [1]


def test_verdicts_are_counted_when_they_are_kept(served: Served) -> None:
    path = asked(served)
    for score in (1, 0.1, -1, 0):
        served.client.post(path, json={"score": score})
    served.client.post(path, json={"score": 2})
    served.client.post(NOBODY, json={"score": 1})

    assert counted(served) == {"good": 2, "bad": 1, "neutral": 1}


def test_no_comment_is_in_the_log_or_in_a_refusal(served: Served) -> None:
    path, secret = asked(served), "Unspeakable"
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        said = served.client.post(path, json={"score": -1, "comment": secret})
        refused = [
            served.client.post(path, json={"score": -1, "comment": secret * 4000}),
            served.client.post(path, json={"score": secret, "comment": secret}),
            served.client.post(NOBODY, json={"score": -1, "comment": secret}),
        ]

    assert said.status_code == 201
    assert [one.status_code for one in refused] == [422, 422, 404]
    assert [line["status"] for line in lines if line["event"] == "request"] == [201, 422, 422, 404]
    assert secret not in str(lines)
    assert not any(secret in one.text for one in refused)


def test_all_feedback_is_a_file_with_the_fields_of_the_list(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.api.exports._LIST_PAGE", 2)  # so that there are several pages
    for score in (-1, 1, -0.5):
        said = {"score": score, "comment": f"=1+{score}, said\nin two lines"}
        assert served.client.post(asked(served), json=said).status_code == 201
    listed = served.client.get("/v1/admin/feedback").json()["data"]
    as_csv = served.client.get("/v1/admin/feedback", headers={"Accept": "text/csv"})
    bad = served.client.get("/v1/admin/feedback", params={"score_below": 0}, headers={"Accept": "application/x-ndjson"})

    rows = list(csv.DictReader(io.StringIO(as_csv.text.removeprefix("\ufeff"))))
    assert as_csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert len(listed) == 3
    assert [(row["request_id"], float(row["score"])) for row in rows] == [
        (one["request_id"], one["score"]) for one in listed
    ]
    assert set(rows[0]) == set(listed[0]) - {"object"}
    assert not any(row["comment"].startswith("=") for row in rows), "no formula for a spreadsheet"
    assert [json.loads(line)["score"] for line in bad.text.splitlines()] == [-0.5, -1]


@pytest.mark.parametrize("param", ["limit", "cursor"])
def test_a_file_of_feedback_has_no_pages(served: Served, param: str) -> None:
    response = served.client.get("/v1/admin/feedback", params={param: "1"}, headers={"Accept": "text/csv"})

    assert (response.status_code, response.json()["param"]) == (422, param)
