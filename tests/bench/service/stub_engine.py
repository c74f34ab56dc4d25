"""A `ports.Engine` without a model: it answers at once, with the first sentence of the first source and its marker."""

import threading
import time
from collections.abc import Sequence

from generation.delivery import TokenStream
from generation.finisher import Ending, Finisher
from generation.ports import Observer, Stream, Tokenizer
from generation.types import Completion, Delta, EngineStats, FinishReason, GenerationRequest, ModelInfo, Timings
from retrieval.sentences import sentence_spans

_READER_SECONDS = 30.0
_MARKER = " [1]"
_NO_SOURCES = "There is nothing to quote."


class StubEngine:
    """Everything around the model is real: streams, the thread that closes the books, and counters."""

    def __init__(self, tokenizer: Tokenizer, *, context_window: int = 8192) -> None:
        self._tokenizer = tokenizer
        self._info = ModelInfo(model="stub", revision="0", context_window=context_window, device="cpu", dtype="none")
        self._finisher = Finisher()
        self._counting = threading.Lock()
        self._requests = self._read = self._written = 0

    @property
    def info(self) -> ModelInfo:
        return self._info

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:
        text = self._answer(request)
        ids = tuple(self._tokenizer.encode(text))
        stream = TokenStream(on_close=self._finisher.wake, on_drained=self._finisher.wake)
        stream.put(Delta(text, len(ids)))
        stream.end()
        with self._counting:
            self._requests += 1
            self._read += len(request.prompt)
            self._written += len(ids)
        completion = Completion(
            id=request.id,
            text=text,
            token_ids=ids,
            finish_reason=FinishReason.STOP,
            prompt_tokens=len(request.prompt),
            cached_tokens=0,
            delivered_tokens=0,
            timings=Timings(queue_ms=0.0, first_token_ms=0.0, total_ms=0.0),
        )
        self._finisher.end(Ending(completion, observer, stream, deadline=time.monotonic() + _READER_SECONDS))
        return stream

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:
        return 0

    def stats(self) -> EngineStats:
        with self._counting:
            return EngineStats(
                waiting=0,
                running=0,
                capacity=64,
                prefill_tokens=self._read,
                decode_tokens=self._written,
                requests=self._requests,
                cancelled=0,
            )

    def alive(self) -> bool:
        return True

    def close(self) -> None:
        self._finisher.close()

    def _answer(self, request: GenerationRequest) -> str:
        if not request.sources:
            return _NO_SOURCES
        start, stop = request.sources[0]
        body = self._tokenizer.decode(request.prompt[start:stop])
        first, last = next(iter(sentence_spans(body)), (0, len(body)))
        said = self._tokenizer.encode(body[first:last].strip())
        room = request.sampling.max_tokens - 2 * len(self._tokenizer.encode(_MARKER))  # joins may cost a token more
        return self._tokenizer.decode(said[:room]).strip() + _MARKER
