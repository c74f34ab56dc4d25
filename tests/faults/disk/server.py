"""A server whose disk fails when a test says so, and that is held to what a refusal must be."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.faults.disk.faults import DiskFaults
from tests.faults.forked import Application
from tests.faults.preloaded.server import PreloadedServer

SOURCE = Path(__file__).with_name("failing.c")
_SLUGS = {503: {"store-unavailable", "not-ready"}, 507: {"insufficient-storage"}}


class Refused(httpx.TransportError):
    """A request was refused with a whole problem document, as for a server that is gone: the client may try again."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response.text)
        self.status = response.status_code
        self.retry_after = response.headers.get("retry-after")


class FailingServer(PreloadedServer):
    """A server over a data dir below `root`, where `faults` happen. Its temporary folder is `root / "tmp"`.

    Every response of 500 or more must be a refusal as promised, or the request fails with an AssertionError; a refusal
    raises `Refused`.
    """

    def __init__(self, folder: Path, application: Application, *, within: Sequence[str] = ()) -> None:
        self.faults = DiskFaults(folder / "plan")
        root, temporary = folder / "disk", folder / "disk" / "tmp"
        variables = {"DISK_ROOT": str(root), "DISK_PLAN": str(self.faults.path), "TMPDIR": str(temporary)}
        super().__init__(folder, SOURCE, application, variables=variables, within=within)
        temporary.mkdir()
        self.refused: list[Refused] = []

    def close(self) -> None:
        super().close()
        self.faults.close()

    def _client(self, url: str) -> httpx.Client:
        client = super()._client(url)
        client.event_hooks = {"response": [self._raise_refusal]}
        return client

    def _raise_refusal(self, response: httpx.Response) -> None:
        if response.status_code < 500:
            return
        response.read()
        assert_refusal(response, hidden=(str(self.root), str(self.data_dir)))
        self.refused.append(Refused(response))
        raise self.refused[-1]


def assert_refusal(response: httpx.Response, *, hidden: tuple[str, ...]) -> None:
    """Hold a refusal to its promise: 503 or 507, a problem document, when to retry, nothing of the inside.

    Raises:
        AssertionError: It breaks one of them.
    """
    assert response.headers["content-type"] == "application/problem+json", response.text
    body: dict[str, Any] = response.json()
    assert response.status_code in _SLUGS, body
    assert body["type"].removeprefix("urn:footnote:problem:") in _SLUGS[response.status_code], body
    assert body["status"] == response.status_code
    assert body["instance"] == response.headers["x-request-id"]
    assert int(response.headers["retry-after"]) > 0, body
    for word in (*hidden, "Traceback", "OSError", "sqlite", "Errno", ".py"):
        assert word not in response.text, body
