"""A chat completion as OpenAI's event stream: chunks, optionally the usage, and a final event."""

import json
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from app.answering.answers.answer import Answer, TextDelta
from app.answering.metering.token_usage import TokenUsage, total
from app.api.errors import failure_of, openai_error
from app.api.event_stream import sse
from app.api.openai.chat_choices import annotations, finish_reason, logprobs
from app.api.openai.choices import Several
from app.api.openai.schemas.chat import StreamOptions
from app.api.schemas.token_usage import UsageBody
from generation.ports import Tokenizer

_PADDED_TO = 32  # characters of text and obfuscation together are a multiple of it


class ChatStream:
    """The event stream of one request. `events` can be read once; `error_event` ends it after a failure."""

    def __init__(
        self, choices: Several, *, model: str, fingerprint: str, tokenizer: Tokenizer, options: StreamOptions | None
    ) -> None:
        """`options` None: neither usage nor obfuscation was requested."""
        self._choices = choices
        self._tokenizer = tokenizer
        self._options = options or StreamOptions()
        self._head = {
            "id": choices.request_id,
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": fingerprint,
        }
        self._spent: list[TokenUsage] = []

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The chunks, then `[DONE]`.

        Raises:
            DeadlinePassed, GenerationError: An answer failed; the others are cancelled.
        """
        refused = self._choices.opened[0].question.json_schema is not None and not self._choices.content
        for index in range(len(self._choices.opened)):
            yield self._chunk(index, {"role": "assistant", "content": None if refused else ""})
        ended: dict[int, Answer] = {}
        async with aclosing(self._choices.stream()) as stream:
            async for index, event in stream:
                if isinstance(event, TextDelta):
                    told = logprobs(event.logprobs, self._tokenizer)
                    yield self._chunk(index, {"refusal" if refused else "content": event.text}, logprobs=told)
                elif isinstance(event, Answer):
                    self._spent.append(event.usage)
                    if (failure := failure_of(event)) is not None:
                        raise failure
                    ended[index] = event
                    yield self._chunk(index, {"annotations": annotations(event)}, finish=finish_reason(event))
        if self._options.include_usage:
            answers = [ended[index] for index in sorted(ended)]  # whichever ended first
            usage = UsageBody.of(await self._choices.usage(answers)).model_dump()
            yield self._rendered([], usage=usage)
        yield sse(None, "[DONE]")

    def error_event(self, problem: dict[str, object]) -> bytes:
        """The last event of a failed stream: OpenAI's error, the problem document, and the usage so far."""
        usage = UsageBody.of(total(self._spent)).model_dump() if self._spent else None
        return sse(None, json.dumps({"error": openai_error(problem), **problem, "usage": usage}))

    def _chunk(
        self, index: int, delta: dict[str, Any], *, finish: str | None = None, logprobs: dict[str, Any] | None = None
    ) -> bytes:
        text = delta.get("content") or delta.get("refusal") or ""
        choice = {"index": index, "delta": delta, "finish_reason": finish, "logprobs": logprobs}
        return self._rendered([choice], usage=None, text=text)

    def _rendered(self, choices: list[dict[str, Any]], *, usage: dict[str, Any] | None, text: str = "") -> bytes:
        body: dict[str, Any] = {**self._head, "choices": choices}
        if self._options.include_usage:
            body["usage"] = usage
        if self._options.include_obfuscation and choices:
            body["obfuscation"] = secrets.token_hex(_PADDED_TO)[: _PADDED_TO - len(text) % _PADDED_TO]
        return sse(None, json.dumps(body, ensure_ascii=False))
