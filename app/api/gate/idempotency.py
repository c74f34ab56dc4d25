"""`Idempotency-Key`: a POST that is sent twice runs once (draft-ietf-httpapi-idempotency-key-header-07).

Pure ASGI, between the request gate and the routes. A JSON body, which the route would hold in memory anyway, is read
and compared here. A multipart body has another boundary each time, so the route compares its fields and its file once
they are on disk (docs/adr/0043).
"""

import hashlib
import hmac
import re
from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio
from fastapi import Request
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access.authenticator import Caller
from app.access.routes import rule_for
from app.api.gate.body_limits import json_kind
from app.api.gate.request_body import read_body, replay_body
from app.api.root_path import route_path
from app.db.idempotency import IdempotencyRepository, KeptAnswer
from app.errors import AppError, MalformedRequest
from app.server.state import State
from app.telemetry.logs import logger

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
UNKEPT = "unkept"
"""The name in a request's state by which a route says that its response is stored nowhere, as one with a secret."""

PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": 255,
        "pattern": r'^(?!"( .*|.* )?"$)[!-~]([ -~]{0,253}[!-~])?$',
    },
    "description": "A key of your choice for this request. A repeated request with the same key and payload does not "
    "run again within 24 hours: it gets the stored response, marked `Idempotent-Replayed: true`. 409 while the first "
    "request runs, 422 for another payload. A request that failed runs again. When the tenant deletes a document, "
    "file, collection or conversation, its stored responses are forgotten: a repeated request gets 409 "
    "`answer-not-kept`, and so does one that had its effect just before the server stopped.",
}
"""The header as an OpenAPI parameter."""

_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")
_KEPT_BYTES = 8 << 20  # of a response; a larger one is not stored, and its request runs again


class Replay(Exception):
    """The request ran before: the stored `answer` is sent instead of running it again."""

    def __init__(self, answer: KeptAnswer) -> None:
        super().__init__("the request ran before")
        self.answer = answer


class Idempotency:
    """ASGI middleware that answers a repeated POST from storage, or passes it on and stores its response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI 3).

        Raises:
            MalformedRequest: The header is not a valid key.
            IdempotencyKeyReused, RequestRunning, AnswerNotKept: As `IdempotencyRepository.claim`.
            ClientGone: The client disconnected before the end of its body.
        """
        key = _key_of(scope)
        if key is None:
            await self._app(scope, receive, send)
            return
        state: State = scope["app"].state.footnote
        async with KeyClaim(state.idempotency, scope, key) as claim:
            scope["state"]["idempotency"] = claim
            try:
                if json_kind(scope) is not None:
                    body = await read_body(receive)
                    await claim.take(body)
                    receive = replay_body(body, receive)
                await self._app(scope, receive, claim.recording(send))
            except Replay as replay:
                kept = replay.answer
                response = Response(kept.body, kept.status, {REPLAYED: "true"}, kept.media_type)
                await response(scope, receive, send)


class KeyClaim:
    """The lock of one request with an idempotency key, from `take` until its response is stored or it has failed.

    Stored digests are keyed with the secret of the API key or session (HMAC-SHA256, RFC 2104), which no database
    holds. So a reader of the database cannot guess keys or payloads, and keys of different callers never collide.
    """

    def __init__(self, requests: IdempotencyRepository, scope: Scope, key: str) -> None:
        self._requests = requests
        self._state = scope["state"]
        caller: Caller = self._state["caller"]
        self._tenant_id = caller.principal.tenant_id
        self._secret = caller.secret.encode("utf-8", "surrogatepass")
        self._query = scope["query_string"]
        self._holds_secret = rule_for(scope["method"], route_path(scope)).secret
        self._id = self._digest(b"request", route_path(scope).encode("utf-8", "surrogatepass"), key.encode())
        self._held = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._held:
            with anyio.CancelScope(shield=True):
                await self._settle(lambda: self._requests.release(self._id))

    async def take(self, *payload: bytes) -> None:
        """Take the lock for this payload, before any work is done.

        Raises:
            Replay: The request ran before.
            IdempotencyKeyReused, RequestRunning, AnswerNotKept: As `IdempotencyRepository.claim`.
        """
        assert not self._held, "a request has one payload"
        fingerprint = self._digest(b"payload", self._query, *(hashlib.sha256(part).digest() for part in payload))
        kept = await anyio.to_thread.run_sync(
            lambda: self._requests.claim(self._id, tenant_id=self._tenant_id, fingerprint=fingerprint)
        )
        if kept is not None:
            raise Replay(kept)
        self._held = True
        self._requests.enter(self._id)

    def recording(self, send: Send) -> Send:
        """Wrap `send` to store a successful response, before its last byte is sent."""
        status, media_type, size = 0, "", 0
        pieces: list[bytes] = []
        worth = False

        async def record(message: Message) -> None:
            nonlocal status, media_type, size, worth
            if message["type"] == "http.response.start":
                status = message["status"]
                media_type = Headers(raw=message["headers"]).get("content-type", "")
                worth = self._held and 200 <= status < 300
            elif message["type"] == "http.response.body" and worth:
                piece = message.get("body", b"")
                size += len(piece)
                worth = size <= _KEPT_BYTES and not self._state.get("failed")  # a stream that ended with an error
                pieces.append(piece)
                if worth and not message.get("more_body", False):
                    answer = KeptAnswer(status, media_type, b"".join(pieces))
                    secret = self._holds_secret or UNKEPT in self._state
                    await self._settle(lambda: self._requests.keep(self._id, answer, secret=secret))
            await send(message)

        return record

    async def _settle(self, how: Callable[[], None]) -> None:
        """Store the response or release the lock; a failure is logged, and the response is sent either way."""
        try:
            await anyio.to_thread.run_sync(how)
        except AppError as error:
            logger().warning("idempotency.unsettled", error=type(error).__name__)
        else:
            self._held = False

    def _digest(self, purpose: bytes, *parts: bytes) -> str:
        keyed = hmac.new(self._secret, purpose, hashlib.sha256)
        for part in parts:
            keyed.update(len(part).to_bytes(8, "big") + part)
        return keyed.hexdigest()


async def take(request: Request, *payload: bytes) -> None:
    """Take the lock for a multipart body that the route has read, if the request has a key.

    Raises:
        Replay: The request ran before; do not catch it.
        IdempotencyKeyReused, RequestRunning, AnswerNotKept: As `IdempotencyRepository.claim`.
    """
    claim: KeyClaim | None = request.scope["state"].get("idempotency")
    if claim is not None:
        await claim.take(*payload)


def _key_of(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope["method"] != "POST" or "principal" not in scope.get("state", {}):
        return None
    given = Headers(scope=scope).getlist(HEADER)
    if not given:
        return None
    key = given[0].strip()
    if len(key) >= 2 and key[0] == key[-1] == '"':  # the draft's form is a quoted string (RFC 8941, section 3.3.3)
        key = key[1:-1]
    if len(given) > 1 or not _KEY.fullmatch(key):
        raise MalformedRequest(f"{HEADER} must be one string of 1 to 255 visible ASCII characters.")
    return key
