"""A question whose server is killed while it answers is shown as interrupted afterwards, and can be asked again."""

from pathlib import Path

import httpx
import pytest

from tests.faults.forked import ForkedServer, KillPoint
from tests.installation import installed
from tests.web.made_documents import HARBOUR, QUESTION
from tests.web.served import application


@pytest.mark.parametrize(
    "kill_at",
    [
        KillPoint("app.answering.closing:Closing.ended", "call"),
        KillPoint("app.db.conversations:ConversationRepository.append", "call"),
    ],
    ids=str,
)
def test_a_question_whose_server_was_killed_is_known_afterwards(tmp_path: Path, kill_at: KillPoint) -> None:
    server = ForkedServer(installed(tmp_path / "data"), application, drain_s=1)
    try:
        server.start(kill_at=kill_at)
        assert server.upload("harbour.txt", HARBOUR, wait="30")["status"] == "indexed"
        conversation = server.http.post("/v1/conversations", json={}).json()["id"]
        body = {"question": QUESTION, "conversation_id": conversation}
        with pytest.raises(httpx.TransportError):
            server.http.post("/v1/ask", json=body)
        assert server.died(seconds=30)

        server.start()
        whole = server.http.get(f"/v1/conversations/{conversation}").json()
        assert whole["data"] == []
        assert [one["question"] for one in whole["interrupted"]] == [QUESTION]
        (listed,) = server.http.get("/v1/conversations").json()["data"]
        assert (listed["turns"], listed["unanswered"]) == (0, 1)
        assert server.http.post("/v1/ask", json=body).status_code == 200
        whole = server.http.get(f"/v1/conversations/{conversation}").json()
        assert (len(whole["data"]), whole["interrupted"]) == (1, [])
    finally:
        server.close()
