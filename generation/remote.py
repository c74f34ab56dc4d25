"""The engine over a remote server: vLLM, SGLang or llama.cpp's server, or any that speaks chat completions."""

import hashlib
import hmac
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from generation.byte_tokenizer import ByteTokenizer
from generation.counters import Counters
from generation.errors import ContextLengthExceeded, EngineFull
from generation.finisher import Finisher
from generation.ports import Observer, Tokenizer
from generation.remote_chat import chat_body
from generation.remote_config import RemoteConfig
from generation.remote_loop import RemoteLoop
from generation.remote_protocol import completion_body
from generation.remote_sequence import CountedStream, RemoteSequence
from generation.remote_server import CompletionServer, fetch_context_window
from generation.step import BlockCounts
from generation.streaming import StopStrings
from generation.types import EngineStats, GenerationRequest, ModelInfo


def _untraced() -> str | None:
    """No trace: returns None."""
    return None


class RemoteEngine:
    """A `ports.Engine` over an OpenAI-compatible server.

    `RemoteLoop` is its thread, in which every running sequence has a connection; closing the connection
    stops the server's generation (llama.cpp's, while it reads a prompt, checks only when it has been
    silent for a second). The finisher's thread settles ended sequences, as in `LocalEngine`.

    Prompts are sent as token ids, so they arrive exactly as they were counted. Fields of a request beyond
    the protocol: `allowed_tokens` is refused; `CitationMarkers` is dropped, for citations are checked
    after generation anyway; `JsonSchema` becomes `response_format`, which llama.cpp's completions
    ignore; `speculate` and `sources` are not sent. `salt` is sent as a `cache_salt`
    that cannot be guessed, so that tenants share no cached prefix where the server supports salts.

    To a server of chat completions the messages are sent that a prompt of `ByteTokenizer` has; `generation.remote_chat`
    says which fields go with them.

    The engine recovers when its server returns, so it needs no supervisor: `alive` is about
    the server.
    """

    def __init__(
        self,
        config: RemoteConfig,
        tokenizer: Tokenizer,
        *,
        context_window: int,
        traceparent: Callable[[], str | None] = _untraced,
    ) -> None:
        """Start the engine's threads; see `load` for the usual way here.

        Args:
            config: Where the server is, bounds and times.
            tokenizer: The served model's; counts tokens where the server does not. A `ByteTokenizer` for chat.
            context_window: In tokens, prompt and output together.
            traceparent: Returns the header of the current trace (W3C Trace Context); called in `submit`.
        """
        if (config.api == "chat") is not isinstance(tokenizer, ByteTokenizer):
            raise ValueError("chat completions, and they alone, are sent by a ByteTokenizer")
        self._config = config
        self._tokenizer = tokenizer
        self._traceparent = traceparent
        self._info = ModelInfo(
            model=config.model, revision="remote", context_window=context_window, device="remote", dtype="unknown"
        )
        self._salt_key = secrets.token_bytes(32)
        server = CompletionServer(config)
        self._counters = Counters(capacity=config.max_running)
        self._finisher = Finisher()
        self._loop = RemoteLoop(server, config, counters=self._counters, finisher=self._finisher)
        self._loop.start()

    @classmethod
    def load(
        cls, config: RemoteConfig, tokenizer: Tokenizer, *, traceparent: Callable[[], str | None] = _untraced
    ) -> "RemoteEngine":
        """Ask the server for the context window unless it is configured, then serve.

        Raises:
            ModelUnavailable: see `generation.remote_server.fetch_context_window`.
        """
        window = fetch_context_window(config) if config.context_window is None else config.context_window
        return cls(config, tokenizer, context_window=window, traceparent=traceparent)

    @property
    def info(self) -> ModelInfo:
        """The model at the server."""
        return self._info

    def submit(self, request: GenerationRequest, *, observer: Observer) -> CountedStream:
        """See `ports.Engine.submit`.

        Raises:
            ValueError: the prompt is empty or holds a negative id, or `allowed_tokens` are asked for.
            ConstraintInvalid: the JSON schema is no JSON.
        """
        prompt_tokens, max_tokens = len(request.prompt), request.sampling.max_tokens
        if not request.prompt or min(request.prompt) < 0:
            raise ValueError("a prompt is at least one token id, each at least 0")
        if request.sampling.allowed_tokens is not None:
            raise ValueError("a generation server cannot be held to allowed_tokens")
        if prompt_tokens + max_tokens > self._info.context_window:
            raise ContextLengthExceeded(
                prompt_tokens=prompt_tokens, max_tokens=max_tokens, context_window=self._info.context_window
            )
        sequence = self._sequence(request, observer)
        self._loop.put(sequence, check=partial(self._check_room, prompt_tokens))
        return sequence.stream

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:  # noqa: ARG002 - the port's
        """Always 0: the server reports cached tokens only afterwards."""
        return 0

    def stats(self) -> EngineStats:
        """See `ports.Engine.stats`. Prompt tokens are counted at a sequence's end; the cache is the server's."""
        counted = self._counters.snapshot(BlockCounts(free=0, used=0, cached=0, block_tokens=0), preemptions=0)
        return replace(counted, cached_tokens=self._loop.cached_tokens)

    def alive(self) -> bool:
        """Whether the server answered when it was asked last. False until the first answer."""
        return self._loop.alive

    def close(self) -> None:
        """See `ports.Engine.close`. Idempotent; connections are closed, so the server stops too."""
        self._loop.close()
        self._finisher.close()

    def _check_room(self, prompt_tokens: int) -> None:
        waiting, tokens = self._counters.waiting, self._counters.waiting_tokens
        too_long = waiting and tokens + prompt_tokens > self._config.max_waiting_tokens
        if waiting >= self._config.max_waiting or too_long:
            rounds = self._counters.waiting / 2 / self._config.max_running  # until half of the line has moved up
            raise EngineFull(retry_after_s=min(60, max(1, math.ceil(rounds * self._counters.service_s))))

    def _sequence(self, request: GenerationRequest, observer: Observer) -> RemoteSequence:
        sequence = RemoteSequence(
            request=request,
            body=self._body(request),
            traceparent=self._traceparent(),
            tokenizer=self._tokenizer,
            stop=StopStrings(request.sampling.stop),
            stream=CountedStream(on_close=lambda: self._left(sequence), on_drained=self._finisher.wake),
            observer=observer,
        )
        return sequence

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        if isinstance(self._tokenizer, ByteTokenizer):
            return chat_body(request, model=self._config.model, tokenizer=self._tokenizer)
        salt = hmac.new(self._salt_key, request.salt.encode(), hashlib.sha256).hexdigest() if request.salt else None
        return completion_body(request, model=self._config.model, cache_salt=salt)

    def _left(self, sequence: RemoteSequence) -> None:
        self._loop.leave(sequence)
        self._finisher.wake()
