"""The request gate: request id, authentication, authorization, limits and rate limit headers of every request.

`RateLimit-Policy` and `RateLimit` are structured fields (RFC 9651) as in draft-ietf-httpapi-ratelimit-headers-10: the
limits, and the remainder of each; `t` is the time until the oldest use leaves the window. The `x-ratelimit-*` headers,
which OpenAI's clients read, show the limit with the least left.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from functools import partial

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access.authenticator import AccessRevoked, Caller, bearer_secret, until_revoked
from app.access.provider_tokens import is_token
from app.access.routes import (
    AdmissionControl,
    is_public,
    presents_secret,
    refusal,
    rule_for,
    speaks_anthropic,
)
from app.admission.failed_logins import LoginBrake
from app.admission.sliding_windows import RateLimitState
from app.api.errors import problem_of, problem_response
from app.api.event_stream import ClientGone
from app.api.gate.body_limits import body_limit, json_kind, readable_size
from app.api.gate.json_size import bounded_json
from app.api.gate.observation import Observation
from app.api.gate.request_body import bounded, read_body, replay_body, until_disconnect
from app.api.protected_resource import PATH as PROTECTED
from app.api.protected_resource import challenge
from app.api.root_path import route_path
from app.documents.spool import too_large_file
from app.errors import Forbidden, InvalidRequest, TooLarge
from app.ids import new_id
from app.server.state import AccessState, State
from app.telemetry.timing import timed


def rate_limit_headers(limit_states: Sequence[RateLimitState]) -> dict[str, str]:
    """Headers for the limits that apply; none where none does."""
    if not limit_states:
        return {}
    headers = {
        "RateLimit-Policy": ", ".join(map(_policy, limit_states)),
        "RateLimit": ", ".join(map(_left, limit_states)),
    }
    for unit in ("requests", "tokens"):
        applying = [
            limit_state for limit_state in limit_states if limit_state.unit == unit and limit_state.window_s is not None
        ]
        if applying:
            tightest = min(applying, key=lambda each: each.remaining)
            headers[f"x-ratelimit-limit-{unit}"] = str(tightest.limit)
            headers[f"x-ratelimit-remaining-{unit}"] = str(tightest.remaining)
            headers[f"x-ratelimit-reset-{unit}"] = f"{tightest.reset_s}s"
    return headers


def _policy(limit_state: RateLimitState) -> str:
    unit = "" if limit_state.unit == "requests" else f';qu="{limit_state.unit}"'
    window = "" if limit_state.window_s is None else f";w={limit_state.window_s}"
    return f'"{limit_state.name}";q={limit_state.limit}{unit}{window}'


def _left(limit_state: RateLimitState) -> str:
    reset = "" if limit_state.window_s is None else f";t={limit_state.reset_s}"
    return f'"{limit_state.name}";r={limit_state.remaining}{reset}'


_DRAIN_SECONDS = 20.0
_UNSENT = 0
_UNAUTHENTICATED = 401
_FAILED_SIGN_INS = frozenset({400, 401, 404, 408, 413, 422})  # one that cannot be read costs work like a wrong key
_INVITATIONS = "/v1/invitations/"
_TIMEOUT = "Request-Timeout"
_CLIENT_CLOSED = 499  # nginx's name for a client that hung up before the answer


class RequestGate:
    """ASGI middleware: gives every request an id, authenticates it, applies limits and records it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI 3)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: State = scope["app"].state.footnote
        _accept_api_key(scope)
        request_id = new_id("req")
        scope.setdefault("state", {}).update(request_id=request_id, arrived=time.monotonic())
        observation, status = Observation(scope, state.telemetry.instruments, request_id), _UNSENT

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers.update(rate_limit_headers(_limit_states(scope)))
                failed = status in _FAILED_SIGN_INS if _signs_in(scope) else status == _UNAUTHENTICATED
                if failed and (address := _guessing_address(scope)) is not None:
                    await state.limits.admission.failed_logins.counted(address)
            try:
                # The server's buffer is bounded: `send` waits while a slow client leaves it full.
                async with asyncio.timeout(state.settings.write_timeout_s):
                    await send(message)
            except TimeoutError:
                raise ClientGone from None

        unread = True

        async def received() -> Message:
            nonlocal unread
            message = await receive()
            unread = message["type"] == "http.request" and message.get("more_body", False)
            return message

        try:
            with timed("authenticate"):
                await _authorize(scope, state)
            limit = _limit(scope, state)
            allowed = until_revoked(send_named, state.access.authenticator, scope)
            body = bounded(received, limit=limit)
            if (kind := json_kind(scope)) is not None:
                body = bounded_json(body, kind=kind)
            await self._admit(scope, body, allowed, state)
        except (ClientGone, ClientDisconnect, AccessRevoked):
            status = _CLIENT_CLOSED
        except Exception as error:
            if status != _UNSENT:
                raise  # the status line is sent; the connection is all that can still be closed
            if unread and isinstance(error, TooLarge) and "expect" not in Headers(scope=scope):
                # A client that writes its whole body before it reads would see a reset instead of the response.
                with anyio.move_on_after(_DRAIN_SECONDS):
                    await _drain(received)
            await _refuse(scope, received, send_named, error, request_id, access=state.access)
        finally:
            observation.end(status)

    async def _admit(self, scope: Scope, receive: Receive, send: Send, state: State) -> None:
        """Pass a request on once admission control admits it."""
        context, admission = scope["state"], state.limits.admission
        context["deadline"] = context["arrived"] + _seconds(scope, state)
        control = rule_for(scope["method"], route_path(scope)).admission
        if control is AdmissionControl.NONE:
            await self._app(scope, receive, send)
            return
        principal = context["principal"]
        with timed("quotas"):
            await admission.refresh()
        context["limit_states"] = partial(admission.limit_states, principal)
        if control is AdmissionControl.RATE_LIMITS:
            async with admission.counted(principal):
                await self._app(scope, receive, send)
            return
        async with admission.entered(
            principal,
            generates=control is AdmissionControl.GENERATION,
            deadline=context["deadline"],
            body=partial(read_body, receive),
            gone=partial(until_disconnect, receive),
        ) as body:
            await self._app(scope, replay_body(body, receive), send)


def _accept_api_key(scope: Scope) -> None:
    """Take the `x-api-key` of Anthropic's clients for the bearer key, on the routes of their protocol."""
    headers = Headers(scope=scope)
    key = headers.get("x-api-key")
    if key is not None and "authorization" not in headers and speaks_anthropic(route_path(scope)):
        scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {key}".encode("latin-1"))]


async def _authorize(scope: Scope, state: State) -> None:
    headers = Headers(scope=scope)
    path, method = route_path(scope), scope["method"]
    address, failed_logins = _guessing_address(scope), state.limits.admission.failed_logins
    if address is not None:
        scope["state"]["limit_states"] = partial(_login_states, failed_logins, address)
        await failed_logins.checked(address, _credentials(scope))
        del scope["state"]["limit_states"]
    if is_public(path, method):
        if client := scope.get("client"):  # clients of a Unix socket have no address
            state.limits.admission.public_rate.count(str(client[0]))
    else:
        caller = await _caller(scope, state.access, headers)
        scope["state"].update(principal=caller.principal, caller=caller)
        if address is not None:
            failed_logins.succeeded(address, headers.get("authorization", ""))
        if (reason := refusal(caller.principal, method, path)) is not None:
            raise Forbidden(reason)
    declared = headers.get("content-length", "")
    limit = _limit(scope, state)
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(scope, limit=limit, file_bytes=state.settings.max_upload_mb << 20)


async def _caller(scope: Scope, access: AccessState, headers: Headers) -> Caller:
    """The caller: of the protected resource also one with an access token of the OpenID provider."""
    authorization, client = headers.get("authorization"), scope.get("client")
    if access.provider_tokens is not None and authorization is not None and route_path(scope) == PROTECTED:
        secret = bearer_secret(authorization)
        if is_token(secret):
            return await access.provider_tokens.caller(secret, address=str(client[0]) if client else "")
    return await access.authenticator.caller(headers, scope["method"])


def _limit(scope: Scope, state: State) -> int:
    """The largest body of a request, in bytes."""
    settings = state.settings
    return body_limit(scope, file_bytes=settings.max_upload_mb << 20, sent_bytes=settings.inline_mb << 20)


def _too_large(scope: Scope, *, limit: int, file_bytes: int) -> TooLarge:
    """The error for a body above `limit`; of an upload it names the limit of the file, not of the form around it."""
    if json_kind(scope) is None and limit > file_bytes:
        return too_large_file(file_bytes)
    return TooLarge(f"The request body is larger than the limit of {readable_size(limit)}.")


def _seconds(scope: Scope, state: State) -> float:
    """The time limit of a request in seconds: the setting, or its header `Request-Timeout` when that is less.

    Raises:
        InvalidRequest: The header is not a number of seconds.
    """
    longest = state.settings.answer_deadline_s
    asked = Headers(scope=scope).get(_TIMEOUT)
    if asked is None:
        return longest
    try:
        seconds = float(asked)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InvalidRequest(f"{_TIMEOUT} must be a number of seconds above 0.", param=_TIMEOUT)
    return min(longest, seconds)


def _limit_states(scope: Scope) -> Sequence[RateLimitState]:
    """The state of each limit that this request met."""
    states: Callable[[], Sequence[RateLimitState]] | None = scope["state"].get("limit_states")
    return states() if states is not None else ()


def _login_states(failed_logins: LoginBrake, address: str) -> tuple[RateLimitState, ...]:
    return (failed_logins.state(address),)


def _guessing_address(scope: Scope) -> str | None:
    """The client address of a request that may be a guess at a key; None for a request without a key.

    The cookie of an ended session is not a guess: browsers go on sending it. Clients of a Unix socket have no address.
    """
    sends_key = "authorization" in Headers(scope=scope) and not is_public(route_path(scope), scope["method"])
    client = scope.get("client")
    return str(client[0]) if client and (_signs_in(scope) or sends_key) else None


def _signs_in(scope: Scope) -> bool:
    return presents_secret(route_path(scope), scope["method"])


def _credentials(scope: Scope) -> str:
    """The credentials that may be exempt from the limit of failures: those that the request is judged by."""
    if route_path(scope).startswith(_INVITATIONS):
        return ""  # a good key in the header is no cover for guesses in the body
    return Headers(scope=scope).get("authorization", "")


async def _refuse(
    scope: Scope, receive: Receive, send: Send, error: Exception, request_id: str, *, access: AccessState
) -> None:
    status, body, headers = problem_of(error, request_id, openid=access.openid is not None)
    if status == _UNAUTHENTICATED and route_path(scope) == PROTECTED:
        headers["WWW-Authenticate"] = challenge(scope, access)
    response = problem_response(status, body, headers, path=route_path(scope))
    await response(scope, receive, send)


async def _drain(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return
