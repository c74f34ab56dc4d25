"""A response as OpenAI's event stream: the response, its items and their parts as they begin and end, the response."""

import json
import secrets
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from app.answering.answers.answer import Answer, TextDelta
from app.answering.metering.token_usage import TokenUsage
from app.answering.running.open_answer import OpenAnswer
from app.api.errors import failure_of
from app.api.event_stream import sse
from app.api.openai.response_keeping import ResponseKeeping
from app.api.openai.response_object import Item, ResponseObject, annotation, failure, status_of

_PADDED_TO = 32  # characters of text and obfuscation together are a multiple of it

RESPONSE_EVENTS = (
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.file_search_call.in_progress",
    "response.file_search_call.searching",
    "response.file_search_call.completed",
    "response.output_item.done",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.annotation.added",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.content_part.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
)
"""The names of the events, in the order in which they first come."""

_LAST = {"completed": "response.completed", "incomplete": "response.incomplete", "cancelled": "response.incomplete"}


class ResponseStream:
    """The event stream of one response. `events` can be read once; `error_event` ends it after a failure."""

    def __init__(self, made: ResponseObject, opened: OpenAnswer, *, keeping: ResponseKeeping) -> None:
        """`opened` has begun."""
        self._made = made
        self._keeping = keeping
        self._opened = opened
        self._in_json = opened.question.json_schema is not None
        options = made.request.stream_options
        self._obfuscates = options is not None and options.include_obfuscation
        self._sent = 0
        self._output: list[Item] = []
        self._usage: TokenUsage | None = None

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The events, from `response.created` to `response.completed` or `response.incomplete`.

        Raises:
            DeadlinePassed, GenerationError: The answer failed.
            StoreUnavailable: The attributes of found files cannot be read.
        """
        made = self._made
        for name in ("response.created", "response.in_progress"):
            yield self._event(name, response=made.at("in_progress", []))
        if (search := await made.searched(self._opened)) is not None:
            for step in self._searched(search):
                yield step
        refused, begun = False, False
        async with aclosing(self._opened.events()) as stream:
            async for event in stream:
                if not isinstance(event, TextDelta | Answer):
                    continue
                if not begun:
                    refused, begun = self._in_json and not (await self._opened.ready()).has_content, True
                    for started in self._begun(refused=refused):
                        yield started
                if isinstance(event, TextDelta):
                    yield self._delta(event, refused=refused)
                    continue
                self._usage = event.usage
                if (failed := failure_of(event)) is not None:
                    raise failed
                for ended in self._ended(event, refused=refused):
                    yield ended
                response = await self._keeping.kept(event, made.ended(event, self._output))
                yield self._event(_LAST[status_of(event)], response=response)

    def error_event(self, problem: dict[str, object]) -> bytes:
        """The last event of a failed stream: the response with the error, the problem document and the usage so far."""
        failed = self._made.at("failed", self._output, usage=self._usage, error=failure(problem))
        return self._event("response.failed", response=failed)

    def _searched(self, item: Item) -> Iterator[bytes]:
        """The events of the file search, which has ended before the stream begins."""
        place = {"output_index": 0}
        begun = self._made.searching([], status="in_progress")
        yield self._event("response.output_item.added", **place, item=begun)
        for step in ("in_progress", "searching", "completed"):
            yield self._event(f"response.file_search_call.{step}", **place, item_id=item["id"])
        yield self._event("response.output_item.done", **place, item=item)
        self._output.append(item)

    def _begun(self, *, refused: bool) -> Iterator[bytes]:
        message = self._made.message("in_progress", [])
        yield self._event("response.output_item.added", output_index=len(self._output), item=message)
        yield self._event("response.content_part.added", **self._place, part=self._made.part("", refused=refused))

    def _delta(self, event: TextDelta, *, refused: bool) -> bytes:
        if refused:
            return self._event("response.refusal.delta", **self._place, delta=event.text)
        members: dict[str, Any] = {"delta": event.text, "logprobs": self._made.logprobs(event.logprobs)}
        if self._obfuscates:
            members["obfuscation"] = secrets.token_hex(_PADDED_TO)[: _PADDED_TO - len(event.text) % _PADDED_TO]
        return self._event("response.output_text.delta", **self._place, **members)

    def _ended(self, answer: Answer, *, refused: bool) -> Iterator[bytes]:
        made, place = self._made, self._place
        part = made.part(answer.text, refused=refused, answer=answer)
        if refused:
            yield self._event("response.refusal.done", **place, refusal=answer.text)
        else:
            for at, citation in enumerate(answer.citations):
                name = "response.output_text.annotation.added"
                yield self._event(name, **place, annotation_index=at, annotation=annotation(citation))
            text = {"text": answer.text, "logprobs": part["logprobs"]}
            yield self._event("response.output_text.done", **place, **text)
        yield self._event("response.content_part.done", **place, part=part)
        message = made.message(status_of(answer), [part])
        yield self._event("response.output_item.done", output_index=place["output_index"], item=message)
        self._output.append(message)

    @property
    def _place(self) -> dict[str, Any]:
        """The place of the message's only part; the message is the next output item until it has ended."""
        item_id = self._made.message("in_progress", [])["id"]
        return {"output_index": len(self._output), "item_id": item_id, "content_index": 0}

    def _event(self, name: str, **members: Any) -> bytes:
        body = {"type": name, "sequence_number": self._sent, **members}
        self._sent += 1
        return sse(name, json.dumps(body, ensure_ascii=False))
