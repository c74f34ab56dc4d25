"""OpenAI's and Anthropic's own clients for Node against a real server, streamed and not."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.app.api.openai.openai_server import SHOWN, Service
from tests.server import ADMIN_KEY

_PACKAGES = Path(__file__).parents[3] / "app" / "web" / "node_modules"
SHIPS = "The pilot counted forty ships in the roads of Rorschach."
QUESTION = "How many ships did the pilot count in the roads of Rorschach?"

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (_PACKAGES / "openai").is_dir() or not (_PACKAGES / "@anthropic-ai").is_dir(),
    reason="node, or the clients in app/web/node_modules, are not there: run `make web-packages`",
)


@pytest.fixture(scope="module")
def roads(openai_service: Service) -> str:
    """The model that asks a collection which says how many ships there are."""
    made = openai_service.http.post("/v1/collections", json={"name": "roads"}).json()["id"]
    openai_service.upload(SHIPS, "roads.txt", collection_id=made)
    return f"footnote:{made}"


def seen_by(client: str, service: Service, model: str) -> Any:
    """What a client's script saw."""
    script = Path(__file__).parent / "node" / f"{client}_client.mjs"
    ran = subprocess.run(
        ["node", str(script)],
        env={
            "PATH": os.environ["PATH"],
            "PACKAGES": str(_PACKAGES / "x.js"),
            "FOOTNOTE_URL": service.url,
            "FOOTNOTE_KEY": ADMIN_KEY,
            "MODEL": model,
            "QUESTION": QUESTION,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_openais_client_for_node_chats_and_responds_with_exact_footnotes(openai_service: Service, roads: str) -> None:
    seen = seen_by("openai", openai_service, roads)

    for way in ("chat", "streamed"):
        (note,) = seen[way]["notes"]
        assert (seen[way]["text"], note["cited_text"], note["filename"]) == (SHOWN, SHIPS, "roads.txt")
    for way in ("response", "final"):
        (note,) = seen[way]["notes"]
        assert (seen[way]["text"], note["type"], note["filename"]) == (SHOWN, "file_citation", "roads.txt")
        place = note["footnote"]
        text = openai_service.http.get(f"/v1/documents/{place['document_id']}/content").text
        assert text[place["start_char"] : place["end_char"]] == place["cited_text"] == SHIPS
    assert (seen["kinds"][0], seen["kinds"][-1]) == ("response.created", "response.completed")
    assert (seen["refused"]["status"], seen["refused"]["param"]) == (422, "temperature")
    assert seen["stranger"] == {"kind": "AuthenticationError", "status": 401}


def test_anthropics_client_for_node_reads_exact_characters(openai_service: Service, roads: str) -> None:
    seen = seen_by("anthropic", openai_service, roads)

    blocks = [(block["text"], block["citations"]) for block in seen["whole"]["content"]]
    assert [(block["text"], block["citations"]) for block in seen["streamed"]["content"]] == blocks
    [(_, [place])] = blocks
    text = openai_service.http.get(f"/v1/documents/{place['file_id']}/content").text
    assert place["type"] == "char_location"
    assert text[place["start_char_index"] : place["end_char_index"]] == place["cited_text"] == SHIPS
    assert (seen["kinds"][0], seen["kinds"][-1]) == ("message_start", "message_stop")
    assert seen["refused"]["status"] in {400, 422}
