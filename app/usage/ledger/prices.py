"""Prices of models: each begins at a time, ends when the next one begins, and is never changed or deleted.

A price is a decimal of the installation's currency for a million tokens of one meter. It is stored as an integer of
pico-units (1e-12) for one token, which is exact because it has at most six decimals.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.db.audit import AuditLog
from app.db.dialect import lock_tables
from app.db.idempotency import note_effect
from app.db.paging import cut, decode_cursor
from app.db.session import Database
from app.db.tables.prices import price
from app.db.values import require_text
from app.errors import Conflict, InvalidRequest, SetupError
from app.ids import new_id
from app.types import Principal
from app.usage.ledger.pricing import METERS

_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,6})(?:\.([0-9]{1,6}))?")
_HIGHEST = 10**12  # one unit a token: 9.2 million tokens of it still cost no more than 64 bits hold
_LATEST = 253_402_300_800 * 1_000_000  # the year 10000
_NAME_CHARS = 200
_SOURCE_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a token while `effective_from <= time < effective_to` (None: until a later price begins).

    Times are Unix microseconds. `source` names where the figure comes from, `created_by` the user who entered it.
    """

    price_id: str
    model: str
    meter: str
    currency: str
    pico_per_token: int
    effective_from: int
    effective_to: int | None
    source: str
    created_by: str
    created_at: int


class PriceRepository:
    """The prices of an installation, in one `currency` (ISO 4217). `clock` gives Unix seconds.

    Example:
        >>> prices = PriceRepository(database, audit, currency="usd")
        >>> prices.add(principal, model="m1", meter="input", price_per_million="0.15").pico_per_token
        150000
    """

    def __init__(
        self, database: Database, audit: AuditLog, *, currency: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._audit = audit
        self._currency = currency
        self._clock = clock

    def require_currency(self) -> None:
        """Check that all stored prices are in this currency, since amounts are summed without conversion.

        Raises:
            SetupError: A price is in another currency.
        """
        with self._database.read() as connection:
            other = sa.select(price.c.currency).where(price.c.currency != self._currency).limit(1)
            found = connection.execute(other).scalar()
        if found is not None:
            raise SetupError(
                f'The prices of this installation are in "{found}", FOOTNOTE_CURRENCY is "{self._currency}"; '
                "recorded costs keep their currency, so set it back."
            )

    def add(
        self,
        principal: Principal,
        *,
        model: str,
        meter: str,
        price_per_million: str,
        effective_from: int | None = None,
        source: str = "",
        request_id: str = "",
    ) -> Price:
        """Add a price that begins at `effective_from` (Unix microseconds; None: now) and ends the one in force then.

        A price may begin in the past only where that model and meter had none; it then ends when the next begins.
        Calls keep the prices they were accepted with; a price added later applies to them only by re-rating.

        Raises:
            InvalidRequest: The price, meter, name or time is not valid; `param` names it.
            Conflict: That time has a price that cannot be ended: it lies in the past, or a later one is set already.
            StoreUnavailable: Nothing was written; try again.
        """
        pico_per_token = parse_price(price_per_million)
        if meter not in METERS:
            raise InvalidRequest(f"meter must be one of {', '.join(METERS)}.", param="meter")
        if not 1 <= len(model) <= _NAME_CHARS:
            raise InvalidRequest(f"model must have 1 to {_NAME_CHARS} characters.", param="model")
        if len(source) > _SOURCE_CHARS:
            raise InvalidRequest(f"source must have at most {_SOURCE_CHARS} characters.", param="source")
        require_text(model, param="model")
        require_text(source, param="source")
        if effective_from is not None and not 0 <= effective_from <= _LATEST:
            raise InvalidRequest("effective_from must be Unix seconds.", param="effective_from")
        with self._database.write() as connection:
            _lock(connection)
            now = round(self._clock() * 1_000_000)
            begin = now if effective_from is None else effective_from
            ended, end = _make_room(connection, model, meter, begin=begin, now=now)
            added = Price(
                price_id=new_id("price"),
                model=model,
                meter=meter,
                currency=self._currency,
                pico_per_token=pico_per_token,
                effective_from=begin,
                effective_to=end,
                source=source,
                created_by=principal.user_id,
                created_at=now,
            )
            connection.execute(
                sa.insert(price).values(
                    price_id=added.price_id,
                    model_id=model,
                    meter=meter,
                    currency=self._currency,
                    pico_per_token=pico_per_token,
                    effective_from=begin,
                    effective_to=end,
                    source=source,
                    created_by=principal.user_id,
                    created_at=now,
                )
            )
            detail = {
                "model": model,
                "meter": meter,
                "price_per_million": per_million(pico_per_token),
                "currency": self._currency,
                "effective_from": begin / 1_000_000,
                "ended": ended,
            }
            self._audit.record_in(connection, principal, "price.added", added.price_id, detail, request_id=request_id)
            note_effect(connection)
        return added

    def list(
        self,
        *,
        model: str | None = None,
        meter: str | None = None,
        at: int | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> tuple[tuple[Price, ...], str | None]:
        """At most `limit` prices by model, meter and beginning, and the cursor of the next page.

        `at` selects those in force at that Unix microsecond.

        Raises:
            InvalidRequest: An unknown meter, or a cursor that this list did not give out.
        """
        query = sa.select(price)
        if model is not None:
            require_text(model, param="model")
            query = query.where(price.c.model_id == model)
        if meter is not None:
            if meter not in METERS:
                raise InvalidRequest(f"meter must be one of {', '.join(METERS)}.", param="meter")
            query = query.where(price.c.meter == meter)
        if at is not None:
            query = query.where(*_covers(at))
        keys = (price.c.model_id, price.c.meter, price.c.effective_from)
        if cursor is not None:
            query = query.where(sa.tuple_(*keys) > sa.tuple_(*decode_cursor(cursor, str, str, int)))
        with self._database.read() as connection:
            found = tuple(map(_to_price, connection.execute(query.order_by(*keys).limit(limit + 1))))
        return cut(found, limit, lambda item: (item.model, item.meter, item.effective_from))


def parse_price(price_per_million: str) -> int:
    """Parse a decimal like `2` or `0.15` in currency units for a million tokens; returns pico-units for one token.

    Raises:
        InvalidRequest: It is not a decimal between 0 and 1000000 with at most six decimals.
    """
    match = _DECIMAL.fullmatch(price_per_million)
    pico = int(match[1]) * 10**6 + int((match[2] or "").ljust(6, "0")) if match is not None else _HIGHEST + 1
    if pico > _HIGHEST:
        raise InvalidRequest(
            'price_per_million must be a decimal string from "0" to "1000000" with at most six decimals.',
            param="price_per_million",
        )
    return pico


def per_million(pico_per_token: int) -> str:
    """Format pico-units for one token as currency units for a million tokens, exactly, with six decimals."""
    return f"{pico_per_token // 10**6}.{pico_per_token % 10**6:06d}"


def _lock(connection: sa.Connection) -> None:
    """Lock the prices against other writers and readers until this transaction ends.

    A call that is being reserved has read the table and so holds it until its commit: no call gets a price that ended
    before it was accepted. The lock has a timeout, because new calls wait behind it while a long report is read. On
    SQLite the transaction alone is enough.
    """
    lock_tables(connection, price, mode="ACCESS EXCLUSIVE", timeout_ms=3000)


def _make_room(
    connection: sa.Connection, model: str, meter: str, *, begin: int, now: int
) -> tuple[str | None, int | None]:
    """End the price in force at `begin`; returns its id, and when the new one ends (None: never)."""
    ours = price.c.model_id == model, price.c.meter == meter
    covering = connection.execute(sa.select(price).where(*ours, *_covers(begin))).one_or_none()
    if covering is None:
        following = sa.select(sa.func.min(price.c.effective_from)).where(*ours, price.c.effective_from > begin)
        return None, connection.execute(following).scalar()
    if begin < now:
        raise Conflict("That time has a price already, and the past is not changed; leave effective_from out for now.")
    if covering.effective_from == begin:
        raise Conflict("A price of this model and meter begins at that moment already.")
    if covering.effective_to is not None:
        raise Conflict("A later price of this model and meter is set already; a new one can only begin after it.")
    connection.execute(sa.update(price).where(price.c.price_id == covering.price_id).values(effective_to=begin))
    return covering.price_id, None


def _covers(at: int) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    return price.c.effective_from <= at, sa.or_(price.c.effective_to.is_(None), price.c.effective_to > at)


def _to_price(row: sa.Row[Any]) -> Price:
    return Price(
        price_id=row.price_id,
        model=row.model_id,
        meter=row.meter,
        currency=row.currency,
        pico_per_token=row.pico_per_token,
        effective_from=row.effective_from,
        effective_to=row.effective_to,
        source=row.source,
        created_by=row.created_by,
        created_at=row.created_at,
    )
