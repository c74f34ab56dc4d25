"""Ledger rows for tests."""

from collections.abc import Iterable

from app.types import Components, DocumentShare, Operation, Principal, Reservation, Role


def reservation(
    event_id: str = "req_1:1",
    *,
    user_id: str = "u1",
    key_id: str = "k1",
    tenant_id: str = "t1",
    model: str = "m1",
    components: Components | None = None,
    operation: Operation = Operation.CHAT,
    input_tokens: int | None = None,
    max_output_tokens: int = 100,
    documents: Iterable[DocumentShare] = (),
) -> Reservation:
    components = components or (Components(2, 3, 4, 5, 6) if operation.generates else Components())
    return Reservation(
        event_id=event_id,
        request_id=event_id.partition(":")[0],
        operation=operation,
        principal=Principal(tenant_id, user_id, key_id, Role.MEMBER),
        endpoint="/v1/ask",
        model=model,
        tokenizer_revision="r1",
        input_tokens=components.total if input_tokens is None else input_tokens,
        max_output_tokens=max_output_tokens,
        components=components,
        documents=tuple(documents),
    )


class Clock:
    """Unix seconds that stand still until they are set."""

    def __init__(self, now: float = 1_763_600_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
