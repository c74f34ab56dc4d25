"""The engine's thread: receive, plan, run, commit, reply."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from generation.config import EngineConfig
from generation.counters import Counters
from generation.errors import EngineOutOfMemory, EngineStopped
from generation.finisher import Ending, Finisher
from generation.pacing import PrefillPace
from generation.relief import LOOK_S, Relief
from generation.scheduler import AdmissionFailed, BatchDrafter, Plan, Scheduler
from generation.sequence import SequenceState
from generation.step import DeviceLost, OutOfMemory, Runner, Sample
from generation.types import FinishReason

logger = logging.getLogger("footnote.generation")

_CHECKPOINT_TOKENS = 32
_PACE_S = 0.25  # a step should not take much longer while others stream
_SMALLEST_CHUNK = 32
_FAILED = "The model failed on this sequence."
_NOT_A_NUMBER = "The model's output for this sequence was not a number."
_NO_MEMORY = str(EngineOutOfMemory())
_STOPPED = str(EngineStopped())


class Speculating(BatchDrafter[SequenceState], Protocol):
    """Drafts tokens and measures their cost; see `speculator.Speculator`."""

    def observe(self, *, rows: int, seconds: float) -> None:
        """Record the duration and the rows of a step that only decoded."""
        ...


class EngineLoop:
    """Owns the scheduler, the sequences and the runner; everything but `put`, `wake`, `close` is its thread's.

    It never waits for a reader or an observer: deltas go to buffers that a sequence's `max_tokens`
    bounds, and the finisher's thread settles ended sequences.
    """

    def __init__(
        self,
        runner: Runner,
        config: EngineConfig,
        *,
        eos_ids: frozenset[int],
        counters: Counters,
        finisher: Finisher,
        speculation: "Speculating | None" = None,
        relief: Relief | None = None,
        working: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Get ready; `start` starts the thread.

        Args:
            runner: The model.
            config: Bounds and times.
            eos_ids: Tokens that end a sequence.
            counters: Count what is done.
            finisher: Settles ended sequences.
            speculation: Drafts tokens; None generates one at a time.
            relief: Gives the cache back when memory is short; None never does.
            working: The context in which the thread lives.
        """
        self._working = working
        self._runner = runner
        self._config = config
        self._eos_ids = eos_ids
        self._counters = counters
        self._finisher = finisher
        self._speculation = speculation
        self._relief = relief
        self.scheduler: Scheduler[SequenceState] = Scheduler(
            runner, max_running=config.max_running, step_tokens=config.step_tokens, drafter=speculation
        )
        self._pace = PrefillPace(
            target_s=_PACE_S, smallest=min(_SMALLEST_CHUNK, config.step_tokens), largest=config.step_tokens
        )
        # Guarded by the condition: state that other threads use.
        self._changed = threading.Condition()
        self._inbox: deque[SequenceState] = deque()
        self._closing = False
        self._dead = False
        self._unshown: list[SequenceState] = []  # they have tokens whose text is not streamed yet
        self._thread = threading.Thread(target=self._serve, name="footnote-engine", daemon=True)

    def start(self) -> None:
        """Work from now on, in a thread of its own."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it takes sequences."""
        return self._thread.is_alive() and not self._dead and not self._closing

    def put(self, sequence: SequenceState, *, check: Callable[[], None]) -> None:
        """Take a sequence, if `check` raises nothing; checks and counts as one act.

        Raises:
            EngineStopped: it was closed, or it died.
        """
        with self._changed:
            if self._closing or self._dead:
                raise EngineStopped("The generation engine is not running.")
            check()
            self._counters.accepted(prompt_tokens=len(sequence.request.prompt))
            self._inbox.append(sequence)
            self._changed.notify()

    def wake(self) -> None:
        """A reader has gone: look."""
        with self._changed:
            self._changed.notify()

    def close(self) -> None:
        """Stop after the step in progress; every sequence ends as cancelled. Idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _serve(self) -> None:
        try:
            with self._working():
                while self._wait():
                    self.turn()
        except BaseException:
            logger.exception("the engine thread died")
            self._stop(FinishReason.ERROR, error=_STOPPED)
        else:
            self._stop(FinishReason.CANCELLED)

    def turn(self) -> None:
        """Run one step: receive sequences, compute, emit tokens. Called by the thread, or by a test."""
        if self._relief is not None:
            self._relief.look()
        self._receive()
        started = time.monotonic()
        plan = self.scheduler.plan(prefill_budget=self._pace.budget)
        samples = self._run(plan)
        self._learn(plan, time.monotonic() - started)
        self._show()  # nothing is left where the runner had time for it
        self._commit(plan, samples)
        if not self._runner.overlaps or not self.scheduler.running:
            self._show()

    def _wait(self) -> bool:
        """Sleep while there is nothing to do, but look at the memory meanwhile; False when it is time to stop."""
        while True:
            with self._changed:
                if self._changed.wait_for(self._has_news, timeout=self._doze_s()):
                    return not self._closing
            if self._relief is not None:
                self._relief.look()

    def _doze_s(self) -> float | None:
        """Seconds until the memory has to be looked at; None while nothing is cached that could be given back."""
        return LOOK_S if self._relief is not None and self._runner.blocks().cached else None

    def _receive(self) -> None:
        """Receive new sequences, end cancelled and expired ones, and admit those that fit."""
        with self._changed:
            arrived, self._inbox = self._inbox, deque()
        for sequence in arrived:
            self.scheduler.add(sequence)
        for sequence in [*self.scheduler.waiting, *self.scheduler.running]:
            if sequence.stream.closed:
                self._end(sequence, FinishReason.CANCELLED)
            elif sequence.expired:
                self._end(sequence, FinishReason.DEADLINE)
        self._admit()

    def _has_news(self) -> bool:
        # With nothing running, the first in line always fits: a line alone is reason enough to go on.
        return self._closing or bool(self._inbox or self.scheduler.waiting or self.scheduler.running)

    def _admit(self) -> None:
        while True:
            try:
                sequence = self.scheduler.admit(time.monotonic())
            except AdmissionFailed as failure:
                logger.exception("no room for a sequence")
                self._end(failure.sequence, FinishReason.ERROR, error=_NO_MEMORY)
                continue
            if sequence is None:
                return
            if sequence.admit():
                self._counters.admitted(prompt_tokens=len(sequence.request.prompt), cached_tokens=sequence.cached)

    def _run(self, plan: Plan[SequenceState]) -> list[Sample]:
        """Run the step; if it fails as a whole, run its rows one by one so that only the culprit ends."""
        for sequence in plan.failed:
            self._end(sequence, FinishReason.ERROR, error=_NO_MEMORY)
        if not plan.work:
            return []
        try:
            return list(self._runner.run(plan.work, meanwhile=self._show))
        except DeviceLost:
            raise
        except Exception:
            logger.exception("a step of %d sequences failed", len(plan.work))
        samples: list[Sample] = []
        for work in plan.work:
            try:
                samples += self._runner.run([work], meanwhile=self._show)
            except DeviceLost:
                raise
            except Exception as error:
                logger.exception("sequence %s failed", work.sequence.request.id)
                sentence = _NO_MEMORY if isinstance(error, OutOfMemory) else _FAILED
                self._end(work.sequence, FinishReason.ERROR, error=sentence)
        return samples

    def _learn(self, plan: Plan[SequenceState], seconds: float) -> None:
        if plan.prefill_tokens:
            self._pace.observe(prefill_tokens=plan.prefill_tokens, seconds=seconds)
        elif self._speculation is not None and plan.work:
            self._speculation.observe(rows=sum(1 + len(work.drafts) for work in plan.work), seconds=seconds)

    def _commit(self, plan: Plan[SequenceState], samples: Sequence[Sample]) -> None:
        """Record the computed tokens and emit the new ones."""
        drawn = {id(sample.sequence): sample for sample in samples}
        running = set(map(id, self.scheduler.running))
        for work in plan.work:
            sequence = work.sequence
            if id(sequence) not in running:
                continue  # it failed in this step
            prefilled = 0 if work.is_decode and sequence.generated else work.tokens
            sample = drawn.get(id(sequence))
            accepted = max(0, len(sample.tokens) - 1) if sample is not None else 0
            if prefilled:
                sequence.note_prefill(prefilled)
            sequence.computed += work.tokens + accepted
            sequence.note_drafts(drafted=len(work.drafts), accepted=accepted)
            before = len(sequence.generated)
            try:
                if sample is not None:
                    self._reply(sequence, sample)
                elif prefilled:
                    self._offer(sequence)
            finally:  # if this kills the engine, the tokens were computed all the same
                generated = len(sequence.generated) - before
                self._counters.stepped(
                    prefill_tokens=prefilled, decode_tokens=generated, drafted=len(work.drafts), accepted=accepted
                )
            self.scheduler.waiting.charge(sequence.user, prefilled + 2 * generated)

    def _reply(self, sequence: SequenceState, sample: Sample) -> None:
        if not sample.tokens:
            self._runner.distrust(sequence)
            self._end(sequence, FinishReason.ERROR, error=_NOT_A_NUMBER)
            return
        checkpoints, last = len(sequence.generated) // _CHECKPOINT_TOKENS, sequence.last_token_at
        reason: FinishReason | None = None
        if sample.abstention is not None:
            sequence.abstention = sample.abstention
        try:
            for token, logprob in zip(sample.tokens, sample.logprobs, strict=True):
                reason = sequence.append(token, eos_ids=self._eos_ids, logprob=logprob)
                if reason is not None:
                    break
        except Exception:
            logger.exception("sequence %s cannot be decoded", sequence.request.id)
            self._end(sequence, FinishReason.ERROR, error=_FAILED)
            return
        self._count_latency(sequence, last)
        sequence.name_blocks()
        self._offer(sequence)
        if reason is not None:
            self._end(sequence, reason)
            return
        self._unshown.append(sequence)
        if len(sequence.generated) // _CHECKPOINT_TOKENS > checkpoints:
            self._finisher.checkpoint(sequence.observer, sequence.request.id, len(sequence.generated))

    def _show(self) -> None:
        """Stream the text of the latest step's tokens: on a GPU while it computes the next one."""
        unshown, self._unshown = self._unshown, []
        for sequence in unshown:
            try:
                sequence.show()
            except Exception:
                logger.exception("sequence %s cannot be decoded", sequence.request.id)
                if sequence in self.scheduler.running:
                    self._end(sequence, FinishReason.ERROR, error=_FAILED)

    def _count_latency(self, sequence: SequenceState, last: float | None) -> None:
        now = sequence.last_token_at
        assert now is not None, "it just got a token"
        if last is None:
            self._counters.token(since_submission=now - sequence.submitted_at, since_last=None)
        else:
            self._counters.token(since_submission=None, since_last=now - last)

    def _offer(self, sequence: SequenceState) -> None:
        if self._relief is not None and not self._relief.keeps:
            return
        try:
            self._runner.offer(sequence)
        except Exception:  # out of memory, most likely: the cache can do without
            logger.exception("sequence %s is not cached", sequence.request.id)

    def _end(self, sequence: SequenceState, reason: FinishReason, *, error: str | None = None) -> None:
        """Free the slot and hand the sequence to the finisher."""
        self._counters.ended(prompt_tokens=len(sequence.request.prompt), admitted_at=sequence.admitted_at)
        try:
            self.scheduler.remove(sequence)
        finally:  # if this kills the engine, the sequence has still ended
            self._finish(sequence, reason, error)

    def _finish(self, sequence: SequenceState, reason: FinishReason, error: str | None) -> None:
        try:
            completion = sequence.complete(reason, error=error)
        except Exception:
            logger.exception("sequence %s cannot be decoded", sequence.request.id)
            completion = sequence.complete(FinishReason.ERROR, error=_FAILED)
        unread = len(sequence.request.prompt) - sequence.read + sequence.found_later
        if _never_read(sequence):
            completion, unread = replace(completion, prompt_tokens=0, cached_tokens=0), 0
        self._counters.finished(completion, recomputed_tokens=sequence.recomputed, unread_tokens=unread)
        sequence.stream.end()
        deadline = time.monotonic() + self._config.reader_grace_s
        self._finisher.end(Ending(completion, sequence.observer, sequence.stream, deadline))

    def _stop(self, reason: FinishReason, error: str | None = None) -> None:
        """End every sequence; nothing is accepted from here on."""
        with self._changed:
            self._dead = True
            left = [*self.scheduler.running, *self.scheduler.waiting, *self._inbox]
            self._inbox.clear()
            self._counters.stopped()
        for sequence in left:
            self._finish(sequence, reason, error)


def _never_read(sequence: SequenceState) -> bool:
    """Whether nothing was computed for it: it waited for room, or for its share of a step."""
    read = sequence.computed > sequence.cached or sequence.preempted or sequence.generated
    return sequence.admitted_at is None or not read
