"""A book for tests."""

import sqlalchemy as sa

from app.types import Reservation
from app.usage.ledger.entry import Entry


class Listener:
    """A `LedgerObserver` that keeps what it is told."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def reserve_in(
        self, connection: sa.Connection, reservation: Reservation, *, at: int, most_pico: int | None
    ) -> None:
        raise AssertionError("an adjustment reserves nothing")

    def settle_in(self, connection: sa.Connection, entry: Entry) -> None:
        self.entries.append(entry)
