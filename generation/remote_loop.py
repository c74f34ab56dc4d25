"""The remote engine's thread: starts sequences, forwards the server's chunks, and reports the final counts."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from functools import partial

from generation.backoff import Backoff
from generation.counters import Counters
from generation.errors import EngineStopped
from generation.finisher import Ending, Finisher
from generation.remote_chat import EXTENSION
from generation.remote_config import RemoteConfig
from generation.remote_health import HealthWatch
from generation.remote_sequence import RemoteSequence
from generation.remote_server import CompletionServer, ServerBusy, ServerFailed, ServerRefused
from generation.types import Completion, FinishReason
from generation.waiting_line import WaitingLine

logger = logging.getLogger("footnote.generation")

_CHECKPOINT_TOKENS = 32
_BUSY = Backoff(first_s=0.1, longest_s=5.0, jitter=0.25)
_FAILED = "The generation server's answer could not be read."


class RemoteLoop:
    """Owns the waiting line, the sequences and the server; everything but `put`, `leave`, `close` is its thread's.

    The thread runs an event loop of its own, in which every running sequence is a task with a
    connection. A request refused with 429 or 503 is sent again for a while, which can only happen
    before its first token, as one refused for a field that the server does not know; nothing else is ever sent twice.
    """

    def __init__(
        self, server: CompletionServer, config: RemoteConfig, *, counters: Counters, finisher: Finisher
    ) -> None:
        """Get ready; `start` starts the thread."""
        self._server = server
        self._config = config
        self._counters = counters
        self._finisher = finisher
        self._health = HealthWatch(server, interval_s=config.health_interval_s)
        self._cached_tokens = 0
        self._lock = threading.Lock()  # guards the two below: nothing is handed to a loop that has ended
        self._closing = False
        self._dead = False
        self._loop = asyncio.new_event_loop()
        # Touched in the loop only.
        self._stop = asyncio.Event()
        self._line: WaitingLine[RemoteSequence] = WaitingLine()
        self._running: set[RemoteSequence] = set()
        self._warned = config.api == "chat"  # where prompts are messages, the counts always differ
        self._extended = True
        self._thread = threading.Thread(target=self._run, name="footnote-remote-engine", daemon=True)

    def start(self) -> None:
        """Start the thread of the loop."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it takes sequences and the server answered when it was asked last. False until the first answer."""
        return self._health.reachable and not self._dead and not self._closing and self._thread.is_alive()

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens the server found in its cache, of the sequences that have ended."""
        return self._cached_tokens

    def put(self, sequence: RemoteSequence, *, check: Callable[[], None]) -> None:
        """Take a sequence, if `check` raises nothing; checks and counts as one act.

        Raises:
            EngineStopped: it was closed, or it died.
        """
        with self._lock:
            if self._closing or self._dead:
                raise EngineStopped("The generation engine is not running.")
            check()
            self._counters.accepted(prompt_tokens=len(sequence.request.prompt))
            self._loop.call_soon_threadsafe(self._arrive, sequence)

    def leave(self, sequence: RemoteSequence) -> None:
        """Its reader has gone: end it, wherever it is."""
        with self._lock:
            if not self._dead:
                self._loop.call_soon_threadsafe(self._cut, sequence, FinishReason.CANCELLED)

    def close(self) -> None:
        """Close every connection, so that the server stops too; every sequence ends as cancelled. Idempotent."""
        with self._lock:
            if not self._closing and not self._dead:
                self._loop.call_soon_threadsafe(self._stop.set)
            self._closing = True
        self._thread.join()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException:
            logger.exception("the remote engine's thread died")

    async def _serve(self) -> None:
        health = self._loop.create_task(self._health.run())
        try:
            await self._stop.wait()
        finally:
            with self._lock:
                self._dead = True
            self._stop.set()
            await asyncio.sleep(0)  # sequences accepted before arrive now, and are ended
            for sequence in [*self._line, *self._running]:
                self._cut(sequence, FinishReason.CANCELLED)
            health.cancel()
            tasks = [sequence.task for sequence in self._running if sequence.task is not None]
            await asyncio.gather(health, *tasks, return_exceptions=True)
            await self._server.close()

    def _arrive(self, sequence: RemoteSequence) -> None:
        self._line.add(sequence)
        deadline_s = sequence.request.deadline_s
        if deadline_s is not None:
            left = max(0.0, sequence.submitted_at + deadline_s - time.monotonic())
            sequence.timer = self._loop.call_later(left, self._cut, sequence, FinishReason.DEADLINE)
        if self._stop.is_set():
            self._cut(sequence, FinishReason.CANCELLED)
        self._dispatch()

    def _dispatch(self) -> None:
        """Start waiting sequences while there is room."""
        while len(self._line) and len(self._running) < self._config.max_running and not self._stop.is_set():
            sequence = self._line.ranked(time.monotonic(), cached=lambda _: 0)[0]
            self._line.remove(sequence)
            self._running.add(sequence)
            sequence.admitted_at = time.monotonic()
            self._counters.admitted(prompt_tokens=len(sequence.request.prompt), cached_tokens=0)
            sequence.task = self._loop.create_task(self._generate(sequence))
            sequence.task.add_done_callback(partial(self._done, sequence))

    def _cut(self, sequence: RemoteSequence, reason: FinishReason) -> None:
        """End a waiting or running sequence early; no effect on one that has ended."""
        if sequence in self._line:
            self._line.remove(sequence)
            self._end(sequence, reason)
        elif sequence in self._running and sequence.cut is None and sequence.task is not None:
            sequence.cut = reason
            sequence.task.cancel()

    async def _generate(self, sequence: RemoteSequence) -> FinishReason:
        """Send the request, retry it while the server is busy, and emit the chunks it sends.

        A request that is refused with a field that OpenAI does not know is sent without it, and so are later ones.
        """
        give_up_at, failures = time.monotonic() + self._config.retry_s, 0
        while True:
            if not self._extended:
                sequence.body.pop(EXTENSION, None)
            try:
                return await self._stream(sequence)
            except ServerRefused:
                if EXTENSION not in sequence.body:
                    raise
                self._extended = False
            except ServerBusy as busy:
                failures += 1
                wait = _BUSY.after(failures, least_s=busy.retry_after_s or 0.0)
                if time.monotonic() + wait > give_up_at:
                    raise
                await asyncio.sleep(wait)

    async def _stream(self, sequence: RemoteSequence) -> FinishReason:
        reason = None
        async with self._server.complete(sequence.body, traceparent=sequence.traceparent) as chunks:
            self._health.seen()
            async for chunk in chunks:
                since, before = sequence.last_token_at, sequence.counted
                new_tokens = sequence.take(chunk)
                if new_tokens:
                    self._count(sequence, before, since)
                reason = reason or chunk.finish_reason
                if reason is None and sequence.stop.found:  # the server does not know stop strings, or not this one
                    return FinishReason.STOP
                if reason is None and sequence.runaway:
                    return FinishReason.LENGTH
                if reason is None and sequence.repeating:
                    return FinishReason.REPETITION
        assert reason is not None, "the server object lets no stream end without a reason"
        return FinishReason.STOP if sequence.stop.found else reason

    def _count(self, sequence: RemoteSequence, before: int, since: float | None) -> None:
        now = sequence.last_token_at or time.monotonic()
        self._counters.stepped(prefill_tokens=0, decode_tokens=sequence.counted - before, drafted=0, accepted=0)
        sequence.tallied = sequence.counted
        if since is None:
            self._counters.token(since_submission=now - sequence.submitted_at, since_last=None)
        else:
            self._counters.token(since_submission=None, since_last=now - since)
        if before // _CHECKPOINT_TOKENS < sequence.counted // _CHECKPOINT_TOKENS:
            self._finisher.checkpoint(sequence.observer, sequence.request.id, sequence.counted)

    def _done(self, sequence: RemoteSequence, task: asyncio.Task[FinishReason]) -> None:
        failure = None if task.cancelled() else task.exception()
        if task.cancelled() or (failure is not None and sequence.cut is not None):
            self._end(sequence, sequence.cut or FinishReason.CANCELLED)
        elif failure is None:
            self._end(sequence, task.result())
        elif isinstance(failure, ServerFailed):
            logger.warning("sequence %s: %s", sequence.request.id, failure)
            self._health.look()
            self._end(sequence, FinishReason.ERROR, error=str(failure))
        else:
            logger.error("sequence %s failed", sequence.request.id, exc_info=failure)
            self._end(sequence, FinishReason.ERROR, error=_FAILED)
        self._dispatch()

    def _end(self, sequence: RemoteSequence, reason: FinishReason, *, error: str | None = None) -> None:
        self._running.discard(sequence)
        if sequence.timer is not None:
            sequence.timer.cancel()
        self._counters.ended(prompt_tokens=len(sequence.request.prompt), admitted_at=sequence.admitted_at)
        completion = self._complete(sequence, reason, error)
        self._charge(sequence, completion)
        sequence.stream.end()
        deadline = time.monotonic() + self._config.reader_grace_s
        self._finisher.end(Ending(completion, sequence.observer, sequence.stream, deadline))

    def _complete(self, sequence: RemoteSequence, reason: FinishReason, error: str | None) -> Completion:
        try:
            return sequence.complete(reason, error=error)
        except Exception:
            logger.exception("sequence %s cannot be encoded", sequence.request.id)
            sequence.forgo_ids()
            return sequence.complete(FinishReason.ERROR, error=_FAILED)

    def _charge(self, sequence: RemoteSequence, completion: Completion) -> None:
        """Count its tokens, for the engine's statistics and the turns of users."""
        self._counters.finished(completion)
        if sequence.first_token_at is not None:
            computed = completion.prompt_tokens - completion.cached_tokens
            rest = completion.generated_tokens - sequence.tallied
            self._counters.stepped(prefill_tokens=computed, decode_tokens=max(0, rest), drafted=0, accepted=0)
            self._cached_tokens += completion.cached_tokens
            self._line.charge(sequence.user, computed + completion.generated_tokens)
        if all(other.user != sequence.user for other in [*self._line, *self._running]):
            self._line.forget(sequence.user)
        sent = len(sequence.request.prompt)
        if completion.prompt_tokens not in (0, sent) and not self._warned:
            self._warned = True
            logger.warning(
                "the generation server counted %d prompt tokens where %d were sent: is its tokenizer Footnote's?",
                completion.prompt_tokens,
                sent,
            )
