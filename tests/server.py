"""A real server in its own process, for tests that need one."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.models.catalog import DEFAULT_MODELS
from app.models.fetch import is_fetched
from app.settings import load_settings
from tests.processes import footnote, kill_session

ADMIN_KEY = "fn_test_admin_key_of_the_suite"
SECRET = "what the processes of the suite have in common"


def require_default_models() -> None:
    models_dir = load_settings().models_dir
    missing = [model.name for model in DEFAULT_MODELS if not is_fetched(model, models_dir=models_dir)]
    if missing:
        pytest.skip(f"{', '.join(missing)} not fetched: run `footnote models fetch`")


class Server:
    """`footnote serve` on a data dir; start, talk to it, stop or kill it, start it again."""

    def __init__(self, data_dir: Path, **settings: object) -> None:
        require_default_models()
        self.data_dir = data_dir
        self._settings = {f"FOOTNOTE_{name.upper()}": str(value) for name, value in settings.items()}
        self._process: subprocess.Popen[bytes] | None = None
        self.http = httpx.Client()

    @property
    def url(self) -> str:
        return str(self.http.base_url).rstrip("/")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> "Server":
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        environment = {
            **os.environ,
            "FOOTNOTE_DATA_DIR": str(self.data_dir),
            "FOOTNOTE_ADMIN_KEY": ADMIN_KEY,
            "FOOTNOTE_PORT": str(port),
            "HF_HUB_OFFLINE": "1",
            **self._settings,
        }
        log = (self.data_dir.parent / "server.log").open("ab")
        self._process = subprocess.Popen(
            footnote("serve"),
            env=environment,
            stdout=log,
            stderr=log,
            cwd=self.data_dir.parent,
            start_new_session=True,
            umask=0o022,  # that of most shells
        )
        log.close()
        self.http.close()
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {ADMIN_KEY}"},
            timeout=120,
            trust_env=False,
        )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise AssertionError(f"the server ended: {self.log()[-2000:]}")
            try:
                if self.http.get("/readyz").status_code == 200:
                    return self
            except httpx.TransportError:
                pass  # not listening yet
            time.sleep(0.1)
        raise AssertionError(f"the server is not ready: {self.log()[-2000:]}")

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def log(self) -> str:
        return (self.data_dir.parent / "server.log").read_text(errors="replace")

    def close(self) -> None:
        """Nothing of it is left, whatever state a failed test left it in."""
        self.http.close()
        if self._process is not None:
            kill_session(self._process)

    def _end(self, how: signal.Signals) -> int:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(how)
        return self._process.wait(timeout=60)

    def metric(self, name: str) -> float:
        for line in self.http.get("/metrics").text.splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")

    def upload(self, name: str, content: bytes, *, wait: float = 30, **fields: Any) -> dict[str, Any]:
        response = self.http.post("/v1/documents", files={"file": (name, content)}, data={"wait": str(wait), **fields})
        assert response.status_code in {200, 202}, response.text
        body: dict[str, Any] = response.json()
        return body

    def settled(self, document_id: str, *, seconds: float = 60) -> dict[str, Any]:
        """The document once it is indexed or failed."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            body: dict[str, Any] = self.http.get(f"/v1/documents/{document_id}").json()
            if body["status"] in {"indexed", "failed"}:
                return body
            time.sleep(0.1)
        raise AssertionError(f"{document_id} is still {body['status']}")
