"""Limits on request bodies: largest size, slowest rate; and reading a whole body before the route does."""

import time
from collections.abc import Callable
from http import HTTPStatus

import anyio
from fastapi import HTTPException
from starlette.types import Message, Receive

from app.api.event_stream import ClientGone
from app.errors import TooLarge, TooSlow

STALL_SECONDS = 30.0
"""Longest pause inside a body, and the time before its rate is checked, in seconds."""

SLOWEST = 1024
"""Slowest allowed rate of a body, in bytes per second."""


def bounded(
    receive: Receive, *, limit: int, stall_s: float = STALL_SECONDS, clock: Callable[[], float] = time.monotonic
) -> Receive:
    """Wrap `receive` to refuse a body above `limit` bytes, whatever length it declares, and one that comes too slowly.

    Raises, from the wrapped `receive`, an `HTTPException` of 413 or 408: FastAPI turns any other exception into a 400.
    After the end of the body only a disconnect can come, which has no time limit.
    """
    received, ended = 0, False
    began = clock()

    async def next_message() -> Message:
        if ended:
            return await receive()
        try:
            with anyio.fail_after(stall_s):
                return await receive()
        except TimeoutError:
            raise _too_slow() from None

    async def bounded_receive() -> Message:
        nonlocal received, ended
        message = await next_message()
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            ended = not message.get("more_body", False)
            if received > limit:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request body is larger than the limit.")
            if not ended and received < (clock() - began - stall_s) * SLOWEST:
                raise _too_slow()
        return message

    return bounded_receive


async def read_body(receive: Receive) -> bytes:
    """Read a whole body.

    Raises:
        TooLarge, TooSlow: The limits of `bounded`, as domain errors.
        ClientGone: The client disconnected before the end.
    """
    pieces: list[bytes] = []
    while True:
        try:
            message = await receive()
        except HTTPException as error:
            raise (TooLarge if error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE else TooSlow)(
                str(error.detail)
            ) from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body again that was already read, and then continues."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def until_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects; its body must have been read.

    Raises:
        ClientGone: The client disconnected.
    """
    while (await receive())["type"] != "http.disconnect":
        pass
    raise ClientGone


def _too_slow() -> HTTPException:
    return HTTPException(
        HTTPStatus.REQUEST_TIMEOUT, "The request body came too slowly.", headers={"Connection": "close"}
    )
