"""The engine: one thread owns the model and serves many sequences."""

import logging
import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Sequence

from generation.config import EngineConfig
from generation.delivery import TokenStream
from generation.errors import ContextLengthExceeded, EngineFull, EngineStopped
from generation.finisher import Ending, Finisher
from generation.ports import Observer, Tokenizer
from generation.scheduler import Scheduler, Work
from generation.sequence import SequenceState
from generation.step import DeviceLost, Runner, Sample
from generation.streaming import IncrementalDecoder
from generation.tokenizer import ChatTokenizer
from generation.types import EngineStats, FinishReason, GenerationRequest, ModelInfo

logger = logging.getLogger("footnote.generation")

_CHECKPOINT_TOKENS = 32
_FAILED = "The model failed on this sequence."
_NOT_A_NUMBER = "The model's output for this sequence was not a number."
_STOPPED = "The generation engine stopped unexpectedly."


class LocalEngine:
    """A `ports.Engine` over a model in this process.

    The engine thread receives, schedules, runs, commits and replies. It never waits for a reader or
    an observer: deltas go to unbounded-by-us buffers (a sequence's `max_tokens` bounds them), the
    books are closed by the finisher's thread.
    """

    def __init__(
        self,
        runner: Runner,
        tokenizer: Tokenizer,
        config: EngineConfig,
        *,
        info: ModelInfo,
        eos_ids: frozenset[int],
        vocab_size: int,
        capacity_tokens: int,
    ) -> None:
        """Start the engine's threads; see `load` for the usual way here.

        Args:
            runner: The model.
            tokenizer: Decodes what is generated.
            config: Bounds and times.
            info: What the model is.
            eos_ids: Tokens that end a sequence.
            vocab_size: Token ids of a prompt lie below it.
            capacity_tokens: Bounds the cache, all sequences together.
        """
        assert info.context_window <= capacity_tokens, "a sequence could never be admitted"
        self._runner = runner
        self._tokenizer = tokenizer
        self._config = config
        self._info = info
        self._eos_ids = eos_ids
        self._vocab_size = vocab_size
        self._scheduler: Scheduler[SequenceState] = Scheduler(
            max_running=config.max_running, step_tokens=config.step_tokens, capacity_tokens=capacity_tokens
        )
        self._finisher = Finisher()
        # Guarded by the condition: what other threads touch.
        self._changed = threading.Condition()
        self._inbox: deque[SequenceState] = deque()
        self._waiting = 0
        self._running = 0
        self._closing = False
        self._dead = False
        self._prefill_tokens = 0
        self._decode_tokens = 0
        self._requests = 0
        self._cancelled = 0
        self._service_s = 1.0  # moving average of a sequence's seconds from admission to end
        self._thread = threading.Thread(target=self._serve, name="footnote-engine", daemon=True)
        self._thread.start()

    @classmethod
    def load(cls, config: EngineConfig, tokenizer: ChatTokenizer) -> "LocalEngine":
        """Load the configured model and serve it.

        Raises:
            ModelUnavailable: see `generation.weights.load_model`.
        """
        from generation.runner import ModelRunner
        from generation.weights import load_model

        loaded = load_model(config)
        return cls(
            ModelRunner(loaded, vocab_size=tokenizer.vocab_size),
            tokenizer,
            config,
            info=loaded.info,
            eos_ids=loaded.eos_ids | tokenizer.eos_ids,
            vocab_size=min(loaded.vocab_size, tokenizer.vocab_size),
            capacity_tokens=loaded.kv_capacity_tokens,
        )

    @property
    def info(self) -> ModelInfo:
        """The model being served."""
        return self._info

    def submit(self, request: GenerationRequest, *, observer: Observer) -> TokenStream:
        """See `ports.Engine.submit`.

        Raises:
            ValueError: the prompt is empty or holds an id the model does not have.
        """
        prompt_tokens, max_tokens = len(request.prompt), request.sampling.max_tokens
        if not request.prompt or not 0 <= min(request.prompt) <= max(request.prompt) < self._vocab_size:
            raise ValueError(f"a prompt is at least one token id, each from 0 to {self._vocab_size - 1}")
        if prompt_tokens + max_tokens > self._info.context_window:
            raise ContextLengthExceeded(
                prompt_tokens=prompt_tokens, max_tokens=max_tokens, context_window=self._info.context_window
            )
        seed = request.sampling.seed
        sequence = SequenceState(
            request=request,
            seed=secrets.randbits(64) if seed is None else seed,
            decoder=IncrementalDecoder(self._tokenizer.decode, stop=request.sampling.stop),
            stream=TokenStream(on_close=self._on_close, on_drained=self._finisher.wake),
            observer=observer,
        )
        with self._changed:
            if self._closing or self._dead:
                raise EngineStopped("The generation engine is not running.")
            if self._waiting >= self._config.max_waiting:
                raise EngineFull(retry_after_s=self._retry_after_s())
            self._waiting += 1
            self._requests += 1
            self._inbox.append(sequence)
            self._changed.notify()
        return sequence.stream

    def stats(self) -> EngineStats:
        """See `ports.Engine.stats`."""
        with self._changed:
            return EngineStats(
                waiting=self._waiting,
                running=self._running,
                capacity=self._config.max_running,
                prefill_tokens=self._prefill_tokens,
                decode_tokens=self._decode_tokens,
                requests=self._requests,
                cancelled=self._cancelled,
            )

    def alive(self) -> bool:
        """See `ports.Engine.alive`."""
        return self._thread.is_alive() and not self._dead and not self._closing

    def close(self) -> None:
        """See `ports.Engine.close`. Idempotent; waits for the step in progress."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        self._finisher.close()

    def _on_close(self) -> None:
        with self._changed:
            self._changed.notify()
        self._finisher.wake()

    def _retry_after_s(self) -> int:
        """Until about half of the line has moved up."""
        rounds = self._waiting / 2 / self._config.max_running
        return min(60, max(1, math.ceil(rounds * self._service_s)))

    # The engine thread, from here on.

    def _serve(self) -> None:
        try:
            while self._receive():
                plan = self._scheduler.plan()
                samples = self._run(plan)
                self._commit(plan, samples)
        except BaseException:
            logger.exception("the engine thread died")
            self._stop(FinishReason.ERROR, error=_STOPPED)
        else:
            self._stop(FinishReason.CANCELLED)

    def _receive(self) -> bool:
        """Take what came in, let go who left, admit who fits; waits while there is nothing to do."""
        while True:
            with self._changed:
                self._changed.wait_for(self._has_news)
                arrived, self._inbox = self._inbox, deque()
                if self._closing:
                    self._inbox = arrived
                    return False
            for sequence in arrived:
                self._scheduler.add(sequence)
            for sequence in [*self._scheduler.waiting, *self._scheduler.running]:
                if sequence.stream.closed:
                    self._end(sequence, FinishReason.CANCELLED)
            while (sequence_or_none := self._scheduler.admit()) is not None:
                self._start(sequence_or_none)
            if self._scheduler.running:
                return True

    def _has_news(self) -> bool:
        # With nothing running, the first in line always fits: a line alone is reason enough to go on.
        return self._closing or bool(self._inbox or self._scheduler.waiting or self._scheduler.running)

    def _start(self, sequence: SequenceState) -> None:
        sequence.admitted_at = time.monotonic()
        with self._changed:
            self._waiting -= 1
            self._running += 1
        try:
            self._runner.allocate(sequence)
        except Exception:
            logger.exception("no room for sequence %s", sequence.request.id)
            self._end(sequence, FinishReason.ERROR, error=_FAILED)

    def _run(self, plan: Sequence[Work[SequenceState]]) -> list[Sample]:
        """Run the step; if it fails as a whole, run its rows one by one so that only the culprit ends."""
        try:
            return list(self._runner.run(plan))
        except Exception:
            logger.exception("a step of %d sequences failed", len(plan))
        samples: list[Sample] = []
        for work in plan:
            try:
                samples += self._runner.run([work])
            except DeviceLost:
                raise
            except Exception:
                logger.exception("sequence %s failed", work.sequence.request.id)
                self._end(work.sequence, FinishReason.ERROR, error=_FAILED)
        return samples

    def _commit(self, plan: Sequence[Work[SequenceState]], samples: Sequence[Sample]) -> None:
        """Write down what was computed and pass the new tokens on."""
        survivors = [work for work in plan if work.sequence in self._scheduler.running]
        prefill_tokens = 0
        for work in survivors:
            prefill_tokens += 0 if work.sequence.generated else work.tokens
            work.sequence.computed += work.tokens
        with self._changed:
            self._prefill_tokens += prefill_tokens
            self._decode_tokens += len(samples)
        for sampled in samples:
            self._reply(sampled.sequence, sampled.token)

    def _reply(self, sequence: SequenceState, token: int | None) -> None:
        if token is None:
            self._end(sequence, FinishReason.ERROR, error=_NOT_A_NUMBER)
            return
        try:
            reason = sequence.append(token, eos_ids=self._eos_ids)
        except Exception:
            logger.exception("sequence %s cannot be decoded", sequence.request.id)
            self._end(sequence, FinishReason.ERROR, error=_FAILED)
            return
        if reason is not None:
            self._end(sequence, reason)
        elif len(sequence.generated) % _CHECKPOINT_TOKENS == 0:
            self._finisher.checkpoint(sequence.observer, sequence.request.id, len(sequence.generated))

    def _end(self, sequence: SequenceState, reason: FinishReason, *, error: str | None = None) -> None:
        """Free the slot and hand the sequence to the finisher."""
        self._scheduler.remove(sequence)
        with self._changed:
            if sequence.admitted_at is None:
                self._waiting -= 1
            else:
                self._running -= 1
                self._service_s += 0.1 * (time.monotonic() - sequence.admitted_at - self._service_s)
        try:
            self._runner.release(sequence)
        finally:  # if this kills the engine, the sequence has still ended
            self._finish(sequence, reason, error)

    def _finish(self, sequence: SequenceState, reason: FinishReason, error: str | None) -> None:
        try:
            completion = sequence.complete(reason, error=error)
        except Exception:
            logger.exception("sequence %s cannot be decoded", sequence.request.id)
            completion = sequence.complete(FinishReason.ERROR, error=_FAILED)
        with self._changed:
            self._cancelled += completion.finish_reason is FinishReason.CANCELLED
        sequence.stream.end()
        deadline = time.monotonic() + self._config.reader_grace_s
        self._finisher.end(Ending(completion, sequence.observer, sequence.stream, deadline))

    def _stop(self, reason: FinishReason, error: str | None = None) -> None:
        """End every sequence; nothing is accepted from here on."""
        with self._changed:
            self._dead = True
            left = [*self._scheduler.running, *self._scheduler.waiting, *self._inbox]
            self._inbox.clear()
            self._waiting = self._running = 0
        for sequence in left:
            self._finish(sequence, reason, error)
