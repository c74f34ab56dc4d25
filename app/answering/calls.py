"""The model calls of one question: their numbers on the ledger, and the calls that a language model generates."""

import asyncio
import threading
from collections.abc import Sequence
from enum import IntEnum

from app.answering.prompt import Prompt
from app.answering.question import Question
from app.telemetry.stations import current, record_generation
from app.types import DocumentShare, Operation, Reservation, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from generation.errors import GenerationError
from generation.ports import Engine, Stream
from generation.types import Completion, FinishReason, GenerationRequest, SamplingParams


class CallNumber(IntEnum):
    """Numbers the model calls within one answer, and so names their ledger rows: `{request id}:{number}`.

    A `FIRST_…` number begins a range: 8 summaries at most, and any number of verifications.
    """

    REWRITE = 0
    EMBED_QUERY = 1
    ANSWER = 2
    RERANK = 3
    FIRST_SUMMARY = 4
    QUOTE_AFTER_ANSWER = 97
    FIND_SENTENCES = 98
    READ = 99
    FIRST_VERIFICATION = 100


class Settler:
    """The engine's `Observer` for one ledger row."""

    def __init__(self, ledger: Ledger, event_id: str) -> None:
        self._ledger = ledger
        self._event_id = event_id
        self._client_left = False
        self._server_stops = False
        self._work = current()  # the engine's threads tell the end

    def client_left(self) -> None:
        """A cancellation that follows is the client's, not ours."""
        self._client_left = True

    def server_stops(self) -> None:
        """A cancellation that follows is ours, whoever passes it on."""
        self._server_stops = True

    def checkpoint(self, request_id: str, generated_tokens: int) -> None:  # noqa: ARG002 - the row is known already
        """Keep the count of a running generation, so that a crash loses at most the tokens since."""
        self._ledger.checkpoint(self._event_id, output_tokens=generated_tokens)

    def finish(self, completion: Completion) -> None:
        """Settle the row with what was really generated and delivered."""
        record_generation(self._work, completion)
        with self._work.active():
            self._ledger.settle(
                self._event_id,
                Settlement(
                    status=self._status(completion.finish_reason),
                    input_tokens=completion.prompt_tokens,
                    cached_tokens=completion.cached_tokens,
                    output_tokens=completion.generated_tokens,
                    delivered_tokens=completion.delivered_tokens,
                    first_token_ms=completion.timings.first_token_ms,
                    total_ms=completion.timings.total_ms,
                ),
            )

    def _status(self, reason: FinishReason) -> UsageStatus:
        match reason:
            case FinishReason.STOP | FinishReason.LENGTH:
                return UsageStatus.COMPLETED
            case FinishReason.DEADLINE:
                return UsageStatus.SERVER_ABORT
            case FinishReason.CANCELLED:
                theirs = self._client_left and not self._server_stops
                return UsageStatus.CLIENT_ABORT if theirs else UsageStatus.SERVER_ABORT
            case FinishReason.ERROR:
                return UsageStatus.ERROR


def submit(
    engine: Engine, ledger: Ledger, reservation: Reservation, request: GenerationRequest
) -> tuple[Stream, Settler]:
    """Write a call down, then hand it to the engine; one that is not taken is settled at once, nothing read.

    Raises:
        GenerationError: The engine did not take it.
        StoreUnavailable, StorageFull: It could not be written down, and the engine never heard of it.
    """
    ledger.reserve(reservation)
    settler = Settler(ledger, reservation.event_id)
    try:
        return engine.submit(request, observer=settler), settler
    except GenerationError:
        ledger.settle(reservation.event_id, Settlement(status=UsageStatus.SERVER_ABORT, input_tokens=0))
        raise


class Calls:
    """One question's calls under way. `close` may come from any thread, any number of times."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._lock = threading.Lock()
        self._open: list[tuple[Stream, Settler]] = []
        self.closed = False

    def add(self, stream: Stream, settler: Settler) -> None:
        """One more is under way; it ends at once if the reader left before."""
        with self._lock:
            self._open.append((stream, settler))
            closed = self.closed
        if closed:
            self._end(stream, settler)

    def close(self) -> None:
        """The reader is gone: all of them stop, and no other is begun."""
        with self._lock:
            self.closed = True
            under_way = list(self._open)
        for stream, settler in under_way:
            self._end(stream, settler)

    def server_stops(self) -> None:
        """What ends them from here on is not the reader."""
        with self._lock:
            for _, settler in self._open:
                settler.server_stops()

    def _end(self, stream: Stream, settler: Settler) -> None:
        if not self._question.late:
            settler.client_left()
        stream.close()


class Caller:
    """Begins such calls. One instance serves every request."""

    def __init__(self, *, engine: Engine, tokenizer_revision: str, ledger: Ledger) -> None:
        self._engine = engine
        self._tokenizer_revision = tokenizer_revision
        self._ledger = ledger

    def begin(
        self,
        question: Question,
        prompt: Prompt,
        *,
        calls: Calls,
        number: int,
        max_tokens: int,
        time_share: int,
        documents: tuple[DocumentShare, ...] = (),
    ) -> Stream | None:
        """Write one call down and hand it to the engine; None if it was not taken or nobody waits for it any more.

        Args:
            question: Who asks, and until when.
            prompt: What the generator reads.
            calls: The request's, which the new one joins.
            number: The call's within the request.
            max_tokens: Most that is generated.
            time_share: The call may take one part in so many of the time that is left.
            documents: Whose text the prompt holds.

        Raises:
            StoreUnavailable, StorageFull: It could not be written down, and was not made.
        """
        if calls.closed or question.late:
            return None
        left = question.seconds_left
        reservation = question.reservation(
            call=number,
            operation=Operation.REWRITE,
            model=self._engine.info.model,
            tokenizer_revision=self._tokenizer_revision,
            input_tokens=prompt.components.total,
            max_output_tokens=max_tokens,
            components=prompt.components,
            documents=documents,
        )
        request = GenerationRequest(
            reservation.event_id,
            prompt.ids,
            SamplingParams(max_tokens=max_tokens),
            salt=question.principal.tenant_id,
            user=question.principal.user_id or question.principal.key_id,
            deadline_s=None if left is None else left / time_share,
            sources=prompt.sources,
        )
        try:
            stream, settler = submit(self._engine, self._ledger, reservation, request)
        except GenerationError:
            return None
        calls.add(stream, settler)
        return stream


def completions(streams: Sequence[Stream | None]) -> list[Completion | None]:
    """How each call ended, None for one that was not made. Blocks until the last one has."""
    return asyncio.run(_ends(streams))


async def _ends(streams: Sequence[Stream | None]) -> list[Completion | None]:
    return await asyncio.gather(*(_end(stream) for stream in streams))


async def _end(stream: Stream | None) -> Completion | None:
    completion = None
    if stream is not None:
        async for event in stream:
            if isinstance(event, Completion):
                completion = event
    return completion
