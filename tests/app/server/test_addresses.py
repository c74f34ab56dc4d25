"""The addresses a server is reached at: directly by TLS, and below the path of a proxy."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import httpx
import pytest

from app.api.application import create_app
from app.server.drain import Drain
from app.server.http_server import Server, configuration
from app.settings import Settings
from tests.app.evaluation.application import application
from tests.app.server.certificate import certificate_for_loopback
from tests.server import ADMIN_KEY


@contextmanager
def _served(folder: Path, settings: Settings) -> Iterator[int]:
    """The application over a scratch data dir, as `footnote serve` serves it; its port."""
    with application(folder / "data") as state:
        drain = Drain(seconds=0)
        app = create_app(lambda: nullcontext(state), version="0", root_path=settings.root_path, drain=drain)
        server = Server(configuration(app, settings), drain, state=lambda: state)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + 30
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            port: int = server.servers[0].sockets[0].getsockname()[1]
            yield port
        finally:
            server.should_exit = True
            thread.join(30)


def test_a_certificate_and_its_key_are_all_that_tls_needs(tmp_path: Path) -> None:
    certificate, key = certificate_for_loopback(tmp_path)
    settings = Settings(port=0, tls_cert=certificate, tls_key=key, _env_file=None)
    trusted = ssl.create_default_context(cafile=str(certificate))
    with (
        _served(tmp_path, settings) as port,
        httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trusted, trust_env=False, timeout=60) as client,
    ):
        answer = client.post("/v1/session", json={"key": ADMIN_KEY})
        assert answer.status_code == 201
        assert "secure" in answer.headers["set-cookie"].casefold(), "the cookie is never sent in the clear"
        assert "strict-transport-security" in answer.headers
        assert client.get("/v1/session").json()["operator"], "signed in by that cookie"
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False)
    assert settings.address(port=1) == "https://127.0.0.1:1"


def test_below_a_path_the_api_describes_itself_there(tmp_path: Path) -> None:
    with (
        _served(tmp_path, Settings(port=0, root_path="/footnote", _env_file=None)) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as proxied,
    ):
        page = proxied.get("/docs")
        assert "/footnote/openapi.json" in page.text
        assert proxied.get("/openapi.json").json()["servers"] == [{"url": "/footnote"}]
        assert proxied.get("/v1/documents").status_code == 401
        listed = proxied.get("/v1/documents", headers={"Authorization": f"Bearer {ADMIN_KEY}"})
        assert listed.status_code == 200
        for kept in ("/footnote/healthz", "/%66ootnote/healthz", "/footnote%2Fhealthz"):
            assert proxied.get(kept).status_code == 200, "a proxy that keeps the path is as good"
        assert proxied.get("/footnote/footnote/healthz").status_code == 401, "one prefix is taken off, and no more"
        assert proxied.request("OPTIONS", "/", extensions={"target": b"*"}).status_code == 401


@pytest.mark.parametrize(
    ("host", "found"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]"), ("box.lan", "box.lan")],
)
def test_the_reported_address_of_a_wildcard_host_is_the_loopback_address(host: str, found: str) -> None:
    assert Settings(host=host, port=81, _env_file=None).address() == f"http://{found}:81"
