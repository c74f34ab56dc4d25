"""The model calls of one question: their numbers on the ledger, and the calls that a language model generates."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    FIND_QUOTES = 98
    READ = 99
    FIRST_VERIFICATION = 100


class Settler:
    """The engine's `Observer` for one ledger row: settles it with the counts that the engine reports.

    >>> settler = Settler(ledger, reservation.event_id)
    >>> stream = engine.submit(request, observer=settler)
    """

    def __init__(self, ledger: Ledger, event_id: str) -> None:
        self._ledger = ledger
        self._event_id = event_id
        self._client_left = False
        self._server_stops = False
        self._work = current()  # `finish` runs in a thread of the engine

    def client_left(self) -> None:
        """Settle a later cancellation as the client's abort."""
        self._client_left = True

    def server_stops(self) -> None:
        """Settle a later cancellation as the server's abort, even if the client left too."""
        self._server_stops = True

    def checkpoint(self, request_id: str, generated_tokens: int) -> None:  # noqa: ARG002 - the row is known already
        """Store the count of a running generation, so that a crash loses at most the tokens since."""
        self._ledger.checkpoint(self._event_id, output_tokens=generated_tokens)

    def finish(self, completion: Completion) -> None:
        """Settle the row with the tokens that were generated and delivered."""
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
                by_client = self._client_left and not self._server_stops
                return UsageStatus.CLIENT_ABORT if by_client else UsageStatus.SERVER_ABORT
            case FinishReason.ERROR:
                return UsageStatus.ERROR


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call that the engine has accepted: its stream, and the settler of its ledger row."""

    stream: Stream
    settler: Settler

    def close(self, *, by_client: bool) -> None:
        """Stop it, as the client's abort or as the server's. Idempotent."""
        if by_client:
            self.settler.client_left()
        self.stream.close()


def submit(engine: Engine, ledger: Ledger, reservation: Reservation, request: GenerationRequest) -> RunningCall:
    """Reserve a call, then hand it to the engine; a call that the engine refuses is settled at once, with no tokens.

    Raises:
        GenerationError: The engine refused it.
        StoreUnavailable, StorageFull, BudgetExceeded: It was not reserved, and not handed to the engine.
    """
    ledger.reserve(reservation)
    settler = Settler(ledger, reservation.event_id)
    try:
        return RunningCall(engine.submit(request, observer=settler), settler)
    except GenerationError:
        ledger.settle(reservation.event_id, Settlement(status=UsageStatus.SERVER_ABORT, input_tokens=0))
        raise


class CallsClosed(Exception):
    """The calls of a question were closed, so no model reads or generates for it any more."""


class Calls:
    """The calls that prepare one question's answer. `close` may be called from any thread, any number of times.

    >>> calls = Calls(question)
    >>> stream = caller.begin(question, prompt, calls=calls, number=4, max_tokens=64, time_share=2)
    >>> calls.close()
    """

    def __init__(self, question: Question, *, on_close: Callable[[], None] | None = None) -> None:
        """`on_close` is called by each `close`, in its thread."""
        self._question = question
        self._on_close = on_close
        self._lock = threading.Lock()
        self._open: list[RunningCall] = []
        self._server_stops = False
        self.closed = False

    @property
    def aborted(self) -> UsageStatus:
        """The status of a call that ends because the calls were closed: by the client, the deadline or the server."""
        by_server = self._server_stops or self._question.late
        return UsageStatus.SERVER_ABORT if by_server else UsageStatus.CLIENT_ABORT

    def add(self, call: RunningCall) -> None:
        """Add a running call; it is stopped at once if the calls were closed before."""
        with self._lock:
            self._open.append(call)
            closed = self.closed
        if closed:
            self._end(call)

    def close(self) -> None:
        """Stop all calls, and begin no other: the client has left, or the deadline has passed."""
        with self._lock:
            self.closed = True
            running = list(self._open)
        for call in running:
            self._end(call)
        if self._on_close is not None:
            self._on_close()

    def server_stops(self) -> None:
        """Settle every later cancellation as the server's abort."""
        with self._lock:
            self._server_stops = True
            for call in self._open:
                call.settler.server_stops()

    def _end(self, call: RunningCall) -> None:
        call.close(by_client=not self._question.late)


class Caller:
    """Begins the calls that prepare an answer: summaries and rewritings. One instance serves every request."""

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
        """Reserve one call and hand it to the engine; None if it is refused, late, or the calls were closed.

        Args:
            question: Its principal pays; its deadline limits the call.
            prompt: The prompt of the call.
            calls: The running calls of the request, to which it is added.
            number: The number of the call within the request (`CallNumber`).
            max_tokens: Most tokens that are generated.
            time_share: The call may take 1 / `time_share` of the time that is left.
            documents: The documents in the prompt, with their tokens.

        Raises:
            StoreUnavailable, StorageFull, BudgetExceeded: It was not reserved, and not made.
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
            call = submit(self._engine, self._ledger, reservation, request)
        except GenerationError:
            return None
        calls.add(call)
        return call.stream


def completions(streams: Sequence[Stream | None]) -> list[Completion | None]:
    """The completion of each call, None for one that was not made. Blocks until the last one has ended."""
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
