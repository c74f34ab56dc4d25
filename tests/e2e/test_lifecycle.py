"""A real `footnote serve`: it listens before its models are loaded, and ends with a sentence when one is not there."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.processes import footnote, running
from tests.server import ADMIN_KEY, require_default_models


@contextmanager
def started(data_dir: Path, **settings: str) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """A server that may not answer yet, and a client of it; both are gone when the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "FOOTNOTE_DATA_DIR": str(data_dir),
        "FOOTNOTE_ADMIN_KEY": ADMIN_KEY,
        "FOOTNOTE_PORT": str(port),
        **settings,
    }
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    with (
        (data_dir.parent / "server.log").open("ab") as log,
        running(footnote("serve"), env=environment, stdout=log, stderr=log, cwd=data_dir.parent) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120, trust_env=False) as http,
    ):
        yield process, http


def wait_for(http: httpx.Client, process: subprocess.Popen[bytes], path: str, *, status: int = 200) -> httpx.Response:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended"
        try:
            response = http.get(path)
        except httpx.TransportError:
            time.sleep(0.02)
            continue
        if response.status_code == status:
            return response
        time.sleep(0.02)
    raise AssertionError(f"{path} never answered {status}")


def test_it_listens_and_takes_uploads_before_its_models_are_loaded_and_reads_them_then(tmp_path: Path) -> None:
    require_default_models()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        with started(tmp_path / "data", NOTIFY_SOCKET=str(tmp_path / "notify")) as (process, http):
            wait_for(http, process, "/healthz")
            unready = http.get("/readyz")
            refused = http.post("/v1/ask", json={"question": "How many ships?"})
            files = {"file": ("log.txt", b"The keeper counted forty ships in March.")}
            uploaded = http.post("/v1/documents", files=files)

            assert (unready.status_code, unready.json()["reasons"]) == (503, ["models: loading"])
            assert unready.json()["checks"]["models"]["total"] > unready.json()["checks"]["models"]["done"] >= 0
            assert (refused.status_code, refused.json()["type"]) == (503, "urn:footnote:problem:not-ready")
            assert int(refused.headers["retry-after"]) > 0
            assert http.get("/v1/usage/report").status_code != 503, "the books are open"
            assert uploaded.status_code == 202, uploaded.text

            wait_for(http, process, "/readyz")
            assert manager.recv(100) == b"READY=1"
            while (document := http.get(f"/v1/documents/{uploaded.json()['id']}").json())["status"] != "indexed":
                assert document["status"] != "failed", document
                time.sleep(0.05)
            assert http.post("/v1/search", json={"query": "ships"}).json()["data"]

            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert manager.recv(100) == b"STOPPING=1"


def test_a_model_that_is_not_there_ends_the_process_with_a_sentence(tmp_path: Path) -> None:
    with started(tmp_path / "data", FOOTNOTE_EMBEDDER=str(tmp_path / "nowhere")) as (process, _):
        assert process.wait(240) == 1
    said = (tmp_path / "server.log").read_text()
    assert "footnote: There is no model" in said
    assert "Traceback" not in said
