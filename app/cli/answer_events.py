"""Reads the server-sent events of a streamed answer, and refuses a stream that is damaged or ends early."""

import json
from collections.abc import Iterator
from typing import Any

import httpx

from app.client import Client, Refused, refused
from generation.server_events import EventDecoder, EventTooLarge

_LARGEST_EVENT = 64 << 20  # bytes; the sources of an answer are sent in one event, with their texts
_LAST = frozenset({"done", "error"})
_NO_ANSWER = "The stream broke: the server sent something that is no part of an answer."


def answer_events(client: Client, body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ask `POST /v1/ask` for a stream and yield its events as (name, data), the last one `done` or `error`.

    Raises:
        Refused: The server refused, the stream broke or ended early, or it is no stream of an answer.
    """
    try:
        with client.http.stream("POST", "/v1/ask", json=body) as response:
            if not response.is_success:
                response.read()
                raise refused(response)
            yield from _events(response)
    except httpx.HTTPError as error:
        raise Refused(f"The stream broke: {type(error).__name__}.") from None


def _events(response: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    decoder = EventDecoder(largest=_LARGEST_EVENT)
    for received in response.iter_bytes():
        try:
            events = decoder.feed(received)
        except EventTooLarge:
            raise Refused(_NO_ANSWER) from None
        for event in events:
            yield event.name, _object(event.data)
            if event.name in _LAST:
                return
    raise Refused("The stream ended before the answer was complete.")


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused(_NO_ANSWER) from None
    if not isinstance(value, dict):
        raise Refused(_NO_ANSWER)
    return value
