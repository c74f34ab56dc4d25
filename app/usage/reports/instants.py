"""Formats times for exports as RFC 3339, to the microsecond: in UTC and in the local time of one zone."""

from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

_MINUTE = 60 * 1_000_000
_KEPT = 10_000  # minutes cached: the lines of a ledger come in order


class _Minute(NamedTuple):
    """A formatted minute; `local` is None if its seconds differ in offset, or the offset has seconds."""

    utc: str
    local: str | None
    offset: str


class Instants:
    """Formats Unix microseconds as RFC 3339 from cached minutes, much faster than `datetime`."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._minutes: dict[int, _Minute] = {}

    def utc(self, at: int) -> str:
        """`2026-03-29T00:59:59.999999Z`."""
        minute, rest = divmod(at, _MINUTE)
        digits = f"{rest:08d}"
        return f"{(self._minutes.get(minute) or self._cached(minute)).utc}{digits[:2]}.{digits[2:]}Z"

    def both(self, at: int) -> tuple[str, str]:
        """`2026-03-29T00:59:59.999999Z` and `2026-03-29T01:59:59.999999+01:00`."""
        minute, rest = divmod(at, _MINUTE)
        utc, local, offset = self._minutes.get(minute) or self._cached(minute)
        digits = f"{rest:08d}"
        second, fraction = digits[:2], digits[2:]
        if local is None:
            moment = datetime.fromtimestamp(at // 1_000_000, self._zone).isoformat()
            return f"{utc}{second}.{fraction}Z", f"{moment[:19]}.{fraction}{moment[19:]}"
        return f"{utc}{second}.{fraction}Z", f"{local}{second}.{fraction}{offset}"

    def _cached(self, minute: int) -> _Minute:
        if len(self._minutes) >= _KEPT:
            self._minutes.clear()
        first, last = (datetime.fromtimestamp(minute * 60 + second, self._zone).isoformat() for second in (0, 59))
        steady = first[:17] == last[:17] and first[19:] == last[19:] and first[17:19] == "00"
        utc = datetime.fromtimestamp(minute * 60, UTC).isoformat()[:17]
        self._minutes[minute] = found = _Minute(utc, first[:17] if steady else None, first[19:])
        return found


def utc(at: int) -> str:
    """Unix microseconds as RFC 3339 UTC."""
    return f"{datetime.fromtimestamp(at // 1_000_000, UTC).isoformat()[:19]}.{at % 1_000_000:06d}Z"


def rfc3339_seconds(seconds: int) -> str:
    """Unix seconds as RFC 3339 UTC: `2026-03-29T00:59:59Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19] + "Z"
