"""An answer is cancelled at any of the processes that share a database, by callers that may."""

from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.scale.member import HALT
from tests.scale.rig import Member, Rig, eventually
from tests.server import ADMIN_KEY


def post(member: Member, path: str, body: dict[str, object] | None = None, key: str = ADMIN_KEY) -> httpx.Response:
    return httpx.post(
        member.server.http.base_url.join(path),
        headers={"Authorization": f"Bearer {key}"},
        json=body,
        timeout=120,
        trust_env=False,
    )


def test_an_answer_is_cancelled_at_a_process_where_it_does_not_run(rig: Rig) -> None:
    writing, other = rig.member("all").start(), rig.member("api").start()
    writing.server.upload("ships.txt", "The keeper looks at every ship.")
    writing.server.settled()
    created = other.server.http.post("/v1/admin/keys", json={"name": "reads", "role": "reader", "user_id": "somebody"})
    stranger = created.json()["secret"]
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(post, writing, "/v1/ask", {"question": f"Who looks at {HALT}?"})
        writing.halted()
        (request_id,) = rig.open_requests()
        path = f"/v1/requests/{request_id}/cancel"

        assert post(other, path, key=stranger).status_code == 404
        assert post(other, "/v1/requests/req_unknown/cancel").status_code == 404
        assert post(other, path).json() == {"cancelled": True}
        eventually(lambda: not rig.cancels(), "nobody cancels it")
        writing.go_on()

        assert asked.result().json()["finish_reason"] == "cancelled"
