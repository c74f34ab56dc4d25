"""Opens and closes the books of one generation, on the engine's word alone."""

from app.engine_stations import record_generation
from app.instrumentation import current
from app.types import Reservation, Settlement, UsageStatus
from app.usage.ledger import Ledger
from generation.errors import GenerationError
from generation.ports import Engine, Stream
from generation.types import Completion, FinishReason, GenerationRequest


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
