"""Periods as they are typed: the last 30 days, in a time zone."""

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import typer

_PERIOD = re.compile(r"([1-9][0-9]{0,4})(h|d|w|mo)")
_MOST_DAYS = 36_600


def last(period: str, zone: ZoneInfo, now: float) -> tuple[int, int]:
    """The Unix seconds `[start, end)` of the last hours, days, weeks or months, the running one included and whole.

    Days, weeks of seven and months are local; a month is counted from the first.

    Raises:
        typer.BadParameter: It is not a number and h, d, w or mo.
    """
    match = _PERIOD.fullmatch(period.strip().lower())
    if match is None or int(match[1]) * {"h": 1, "d": 24, "w": 168, "mo": 744}[match[2]] > _MOST_DAYS * 24:
        raise typer.BadParameter("write a number and h, d, w or mo, such as 30d or 12h", param_hint="--last")
    count, unit = int(match[1]), match[2]
    if unit == "h":
        end = (int(now) // 3600 + 1) * 3600
        return max(end - count * 3600, 0), end
    today = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    tomorrow = _midnight(today, 1)
    if unit == "mo":
        months = today.year * 12 + today.month - count
        start = today.replace(year=months // 12, month=months % 12 + 1, day=1)
    else:
        start = _midnight(today, 1 - count * (7 if unit == "w" else 1))
    return max(int(start.timestamp()), 0), int(tomorrow.timestamp())


def _midnight(day: datetime, days: int) -> datetime:
    """The midnight so many local days later; wall time, so a day of 23 hours is one."""
    return day + timedelta(days=days)
