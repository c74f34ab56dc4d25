"""One client of the application at a time, message by message, and an engine it may have to wait for."""

import asyncio
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from generation.config import EngineConfig
from generation.constraints import TokenConstraint
from generation.engine import Constraints, LocalEngine
from generation.types import Constraint, ModelInfo
from tests.app.api.unhurried import Service
from tests.generation.fakes import LetterTokenizer, ScriptedRunner, letters

QUESTION = {"question": "How did revenue do?"}


class Anything:
    """A constraint that forbids nothing."""

    def compile(self, constraint: Constraint) -> TokenConstraint:
        return cast(TokenConstraint, self)

    def advance(self, token_id: int) -> None:
        """Every token may come."""


def slow_engine(before_step: Any, *, max_running: int = 8) -> LocalEngine:
    """The engine itself over a scripted model that waits before each step."""
    return LocalEngine(
        ScriptedRunner(letters(3000), before_step=before_step),
        LetterTokenizer(),
        EngineConfig(model="slow", max_running=max_running),
        info=ModelInfo(model="slow", revision="0", context_window=9000, device="cpu", dtype="float32"),
        eos_ids=frozenset({0}),
        vocab_size=0x110000,
        constraints=cast(Constraints, Anything()),
    )


class Caller:
    """One request spoken in ASGI, whose client may hang up; to /v1/ask unless another path is given."""

    def __init__(
        self,
        service: Service,
        *,
        path: str = "/v1/ask",
        body: bytes | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
        address: str = "testclient",
        **fields: object,
    ) -> None:
        """Without a body it asks a question, with these fields besides."""
        self._service = service
        self._body: bytes | None = json.dumps({**QUESTION, **fields}).encode() if body is None else body
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.reads = 0
        self._gone = asyncio.Event()
        self._received: list[bytes] = []
        self._scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [
                (name.encode(), value.encode())
                for name, value in {
                    "authorization": service.http.headers["authorization"],
                    "content-type": "application/json",
                    **{name.lower(): value for name, value in headers.items()},
                }.items()
            ],
            "client": (address, 1),
            "server": ("testserver", 80),
        }

    async def _receive(self) -> dict[str, object]:
        self.reads += 1
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        self._received.append(message.get("body", b""))

    def get(self) -> None:
        """Make it a GET, and wait for the answer."""
        self._scope["method"] = "GET"
        self._service.portal.call(self)

    async def __call__(self) -> None:
        await self._service.http.app(self._scope, self._receive, self._send)

    @property
    def request_id(self) -> str:
        return str(self._scope["state"]["request_id"])

    @property
    def received(self) -> bytes:
        """The body so far."""
        return b"".join(self._received)

    @property
    def answer(self) -> Any:
        return json.loads(self.received)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """The name and the data of each server-sent event so far."""
        blocks = [block.split("\n") for block in self.received.decode().split("\n\n") if block.startswith("event:")]
        return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data, *_ in blocks]

    def hang_up(self) -> None:
        self._service.portal.call(self._gone.set)
