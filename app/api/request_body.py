"""A request's body as it may come: not above a size, and not a byte at a time."""

import time
from collections.abc import Callable
from http import HTTPStatus

import anyio
from fastapi import HTTPException
from starlette.types import Message, Receive

STALL_SECONDS = 30.0
"""Longest silence inside a body, and what a body may take before its rate counts."""

SLOWEST = 1024
"""Least rate of a body, in bytes per second."""


def bounded(
    receive: Receive, *, limit: int, stall_s: float = STALL_SECONDS, clock: Callable[[], float] = time.monotonic
) -> Receive:
    """`receive`, refusing a body that grows past `limit` bytes whatever length it declared, or hardly comes at all.

    What it raises is an `HTTPException` of 413 or 408: FastAPI turns any other exception raised while it
    reads a body into a 400. After the body's end only a disconnect can come, and that may take its time.
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


def _too_slow() -> HTTPException:
    return HTTPException(
        HTTPStatus.REQUEST_TIMEOUT, "The request body came too slowly.", headers={"Connection": "close"}
    )
