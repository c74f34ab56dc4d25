"""Meters of answers for tests, over a ledger or over none."""

from contextlib import AbstractContextManager, nullcontext
from typing import cast

from app.answering.metering.meter import Meter, Meters
from app.answering.question import Question
from app.types import Reservation, Settlement
from app.usage.ledger.ledger import Ledger, MeteredCall
from generation.ports import Engine
from tests.app.answering.idle_engine import IdleEngine


class NoBooks:
    """A ledger that writes nothing down."""

    def metered(self, reservation: Reservation) -> AbstractContextManager[MeteredCall]:
        return nullcontext(MeteredCall())

    def reserve(self, reservation: Reservation) -> None:
        """Nothing is written."""

    def settle(self, event_id: str, settlement: Settlement) -> None:
        """Nothing is written."""


def meters(ledger: Ledger | None = None, *, engine: object = None) -> Meters:
    """Without an engine nothing can be generated."""
    return Meters(
        ledger=ledger or cast(Ledger, NoBooks()),
        engine=cast(Engine, engine or IdleEngine()),
        tokenizer_revision="r1",
    )


def meter_of(
    question: Question,
    ledger: Ledger | None = None,
    *,
    engine: object = None,
) -> Meter:
    return meters(ledger, engine=engine).of(question)
