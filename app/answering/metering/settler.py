"""Calls that the engine generates: the observer that settles the row of each, and waiting for several."""

import asyncio
from collections.abc import Sequence

from app.answering.metering.token_usage import CountedCall
from app.telemetry.timing import current, record_generation
from app.types import Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from generation.ports import Stream
from generation.types import Completion, FinishReason


class Settler:
    """The engine's `Observer` for one ledger row: settles it with the counts that the engine reports."""

    def __init__(self, ledger: Ledger, event_id: str, counted: CountedCall) -> None:
        """`counted` has the counts before the row is settled."""
        self._ledger = ledger
        self._event_id = event_id
        self._counted = counted
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
        self._counted.ended(completion)
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
            case FinishReason.STOP | FinishReason.LENGTH | FinishReason.REPETITION:
                return UsageStatus.COMPLETED
            case FinishReason.DEADLINE:
                return UsageStatus.SERVER_ABORT
            case FinishReason.CANCELLED:
                by_client = self._client_left and not self._server_stops
                return UsageStatus.CLIENT_ABORT if by_client else UsageStatus.SERVER_ABORT
            case FinishReason.ERROR:
                return UsageStatus.ERROR


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
