"""GET /v1/answers/{id}/receipt: who gets one, and what is not in it; the keys, and their rotation."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.receipts.verification import verify
from app.types import Principal, Role, Turn
from tests.app.api.credentials import key_of
from tests.app.receipts.receipted import QUOTING, SHIPS, Receipted, receipted, written


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receipted]:
    with receipted(tmp_path_factory.mktemp("receipts") / "data") as served:
        served.upload()
        yield served


def fails(served: Receipted, receipt: dict[str, object]) -> list[str]:
    return [one.says for one in verify(written(receipt), keys=served.keys()) if one.holds is False]


def test_it_holds_what_was_stored_and_hashes_of_the_file_and_its_text(served: Receipted) -> None:
    answer = served.ask(by=QUOTING)
    response = served.client.get(f"/v1/answers/{answer['id']}/receipt")
    receipt = response.json()
    (document,) = receipt["documents"]

    assert response.headers["content-disposition"] == 'attachment; filename="receipt.json"'
    assert document["sha256"] == document["text_sha256"] == hashlib.sha256(SHIPS.encode()).hexdigest()
    assert {row["event_id"] for row in receipt["bill"]["rows"]} == {
        row.event_id for row in served.state.usage.ledger.usage(answer["id"])
    }
    assert receipt["withheld"] == []
    assert fails(served, receipt) == []


def test_a_receipt_names_neither_keys_nor_users_nor_tenants(served: Receipted) -> None:
    headers = key_of(served.state, Role.MEMBER)
    answer = served.ask(headers=headers)
    text = json.dumps(served.receipt(answer["id"], headers=headers))

    assert not [name for name in ("api_key_id", "key_0", "user_id", "default-member", "tenant", "fn_") if name in text]


def test_an_answer_that_is_not_kept_or_not_the_callers_is_not_found_and_makes_no_key(tmp_path: Path) -> None:
    with receipted(tmp_path / "data") as served:
        served.upload()
        ann, ben = key_of(served.state, Role.READER), key_of(served.state, Role.MEMBER)
        rival = key_of(served.state, Role.ADMIN, tenant="rival")
        own = served.ask(headers=ann)["id"]
        alone = served.client.post("/v1/ask", json={"question": "How many ships?"}, headers=ann).json()["id"]
        for request_id, headers in (("req_nowhere", ann), (alone, ann), (own, ben), (own, rival)):
            response = served.client.get(f"/v1/answers/{request_id}/receipt", headers=headers)
            assert response.status_code == 404
            assert response.headers["content-type"] == "application/problem+json"
            assert "it is not kept" in response.json()["detail"]
        assert json.loads(served.keys()) == {"keys": []}
        assert served.client.get(f"/v1/answers/{own}/receipt", headers={"Authorization": ""}).status_code == 401

        for headers in (ann, {}):  # its user, and the tenant's administrator
            assert served.receipt(own, headers=headers)["id"] == own
        (key,) = json.loads(served.keys())["keys"]
        assert key["retired_at"] is None


def test_whoever_reads_a_shared_conversation_gets_its_receipts_until_it_is_shared_no_more(served: Receipted) -> None:
    ann, ben = key_of(served.state, Role.READER), key_of(served.state, Role.MEMBER)
    conversation = served.conversation(headers=ann)
    answer = served.ask(headers=ann, conversation_id=conversation)["id"]
    path, receipt = f"/v1/conversations/{conversation}", f"/v1/answers/{answer}/receipt"

    served.client.patch(path, json={"shared": True}, headers=ann)
    assert served.client.get(receipt, headers=ben).status_code == 200
    limited = key_of(served.state, Role.MEMBER, collections=("col_1",))
    assert served.client.get(receipt, headers=limited).status_code == 404
    served.client.patch(path, json={"shared": False}, headers=ann)
    assert served.client.get(receipt, headers=ben).status_code == 404
    served.client.delete(path, headers=ann)
    assert served.client.get(receipt, headers=ann).status_code == 404


def test_of_a_document_that_the_key_does_not_reach_any_more_only_the_id_is_told(tmp_path: Path) -> None:
    with receipted(tmp_path / "data") as served:
        collection = served.client.post("/v1/collections", json={"name": "reached"}).json()["id"]
        other = served.client.post("/v1/collections", json={"name": "other"}).json()["id"]
        text = "The pilot logged forty ships in August.\n"
        document = served.upload(text, "august.txt", collection_id=collection)
        made = served.client.post("/v1/admin/keys", json={"name": "limited", "collections": [collection]}).json()
        headers = {"Authorization": f"Bearer {made['secret']}"}
        answer = served.ask("How many ships did the pilot log in August?", by=QUOTING, headers=headers)
        assert served.receipt(answer["id"], headers=headers)["answer"]["text"] == answer["answer"]

        changed = served.client.patch(f"/v1/admin/keys/{made['id']}", json={"collections": [other]})
        assert changed.status_code == 200, changed.text
        receipt = served.receipt(answer["id"], headers=headers)

        assert "pilot logged" not in json.dumps(receipt)
        assert "august.txt" not in json.dumps(receipt)
        assert (receipt["answer"]["text"], receipt["answer"]["parts"], receipt["answer"]["withheld"]) == (
            None,
            [],
            True,
        )
        assert receipt["documents"] == []
        assert receipt["withheld"] == [
            {"document_id": document, "version": 1, "reason": "not_readable", "footnotes": [1]}
        ]
        assert fails(served, receipt) == []
        assert served.receipt(answer["id"])["answer"]["text"] == answer["answer"], "the administrator still reads it"


def test_of_a_deleted_document_the_kept_words_stay_and_no_hash_is_told(tmp_path: Path) -> None:
    with receipted(tmp_path / "data") as served:
        document = served.upload()
        answer = served.ask(by=QUOTING)
        assert served.client.delete(f"/v1/documents/{document}").status_code in {200, 202, 204}
        receipt = served.receipt(answer["id"])

        assert receipt["documents"] == []
        assert receipt["withheld"] == [{"document_id": document, "version": 1, "reason": "deleted", "footnotes": [1]}]
        assert receipt["answer"]["text"] == answer["answer"]
        checks = [*verify(written(receipt), keys=served.keys(), files={}, read_text=lambda *_: "")]
        assert [check.holds for check in checks] == [True, True, True, None, None]
        assert "was deleted before the receipt was made" in checks[-1].says


def test_of_a_replaced_version_it_tells_the_hashes_of_the_one_that_was_cited(tmp_path: Path) -> None:
    with receipted(tmp_path / "data") as served:
        document = served.upload()
        answer = served.ask(by=QUOTING)
        body = {"text": SHIPS.replace("forty", "fifty"), "filename": "ships.txt", "wait": 20}
        assert served.client.put(f"/v1/documents/{document}", json=body).json()["version"] == 2
        receipt = served.receipt(answer["id"])

        told = [(one["version"], one["sha256"]) for one in receipt["documents"]]
        assert told == [(1, hashlib.sha256(SHIPS.encode()).hexdigest())]


def test_a_turn_of_an_early_version_lists_what_was_not_recorded(served: Receipted) -> None:
    turn = Turn(request_id="req_early", question="Early?", standalone=None, answer="No.", answered=True, citations=())
    served.state.history.responses.begin(Principal("default", "ann", "key_ann", Role.MEMBER), turn, "{}")
    receipt = served.receipt("req_early")

    assert receipt["bill"] == {
        "rows": [],
        "total": {"cost": None, "currency": None, "input_tokens": 0, "output_tokens": 0, "rows_without_price": 0},
    }
    assert "answer.parts" in receipt["not_recorded"]
    assert fails(served, receipt) == []


def test_an_adjustment_is_a_row_of_later_receipts(tmp_path: Path) -> None:
    with receipted(tmp_path / "data", priced=False) as served:
        served.upload()
        answer = served.ask()["id"]
        before = served.receipt(answer)
        served.price()
        times = {"start_time": 0, "end_time": int(served.state.usage.ledger.seconds()) + 1}
        body = {**times, "reason": "priced late", "dry_run": False}
        rerated = served.client.post("/v1/admin/prices/rerate", json=body)
        assert rerated.status_code == 200, rerated.text
        after = served.receipt(answer)

        assert (before["bill"]["total"]["cost"], before["bill"]["total"]["rows_without_price"]) == (None, 2)
        assert [row["reason"] for row in after["bill"]["rows"]] == [None, None, "priced late", "priced late"]
        assert after["bill"]["total"]["cost"] is not None
        assert fails(served, before) == fails(served, after) == []


def test_rotation_keeps_older_receipts_valid_and_is_in_the_audit_log(served: Receipted) -> None:
    answer = served.ask()["id"]
    old = served.receipt(answer)
    rotated = served.client.post("/v1/admin/signing-keys/rotate")
    new = served.receipt(answer)
    keys = json.loads(served.keys())["keys"]

    assert rotated.status_code == 200
    assert new["key"]["kid"] == rotated.json()["kid"] != old["key"]["kid"]
    assert [key["kid"] for key in keys][:2] == [new["key"]["kid"], old["key"]["kid"]]
    assert [key["retired_at"] is None for key in keys][:2] == [True, False]
    assert not [key for key in keys if {"d", "sealed"} & key.keys()]
    assert fails(served, old) == fails(served, new) == []
    (entry, *_) = served.client.get("/v1/admin/audit").json()["data"]
    assert (entry["action"], entry["target"]) == ("signing_key.rotated", new["key"]["kid"])
    rival = key_of(served.state, Role.ADMIN, tenant="rival")
    assert served.client.post("/v1/admin/signing-keys/rotate", headers=rival).status_code == 403
