"""Writes the weekly summary as a letter in plain text: each figure beside that of the week before.

Example:
    >>> letter = weekly_letter(weekly.message(weeks), to="ada@example.org")
    >>> letter.subject
    'Footnote, 2025-11-17 to 2025-11-23: 42 questions, 38 answered'
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from app.outbound.mail import Letter

_NONE = "none"
_CENTS = Decimal("0.01")
_SMALL = Decimal("0.000001")  # below a cent, answers cost so little
_ENDING = """\
What was asked, what the documents did not answer, and what it was used for stands in Footnote's page under \
Administration, Overview. This mail has no texts of questions."""


def weekly_letter(message: Mapping[str, Any], *, to: str) -> Letter:
    """The letter of a weekly summary.

    Args:
        message: The body of the summary, as a webhook gets it: an overview by day, whose `before` is the week before.
        to: The address it goes to.
    """
    overview = message["overview"]
    total, before = overview["total"], overview["before"]["result"]
    zone = ZoneInfo(overview["tz"])
    first, last = _day(overview["start_time"], zone), _day(overview["end_time"] - 1, zone)
    lines = [
        f"{name}: {now}" if now == then else f"{name}: {now} (the week before: {then})"
        for (name, now), (_, then) in zip(_figures(total), _figures(before), strict=True)
        if (now, then) != ("0", "0") or name == "Questions"
    ]
    text = "\n".join(
        [
            f"Footnote from {first} to {last} ({overview['tz']}), tenant {message['tenant_id']}.",
            "",
            *lines,
            f"Cost of this month so far: {_money(overview['month']['cost'])}",
            "",
            _ENDING,
            "",
        ]
    )
    asked = f"{total['num_questions']:,} questions, {total['num_answered']:,} answered"
    return Letter(to, f"Footnote, {first} to {last}: {asked}", text)


def _figures(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The names and values of the figures, in the order of the letter."""
    confirmed, confirmable = result["num_confirmed"], result["num_confirmable"]
    return [
        ("Questions", f"{result['num_questions']:,}"),
        ("Answered", f"{result['num_answered']:,}"),
        ("Unsure", f"{result['num_unsure']:,}"),
        ("Not answered", f"{result['num_refused']:,}"),
        ("Failed", f"{result['num_failed']:,}"),
        ("Cancelled", f"{result['num_cancelled']:,}"),
        ("Not recorded", f"{result['num_unknown']:,}"),
        ("Answers with a verified citation", f"{confirmed:,} of {confirmable:,}" if confirmable else _NONE),
        ("Liked", f"{result['num_thumbs_up']:,}"),
        ("Disliked", f"{result['num_thumbs_down']:,}"),
        ("Seconds to answer", _seconds(result["median_seconds"], result["p95_seconds"])),
        ("Active people", f"{result['num_active_users']:,}"),
        ("Tokens read", f"{result['input_tokens']:,}"),
        ("Tokens written", f"{result['output_tokens']:,}"),
        ("Cost", _money(result["cost"])),
        ("Cost of a question", _money(result["cost_per_question"])),
    ]


def _day(seconds: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(seconds, zone).date().isoformat()


def _seconds(median: float | None, p95: float | None) -> str:
    return _NONE if median is None or p95 is None else f"{median:g} in the median, 95 % within {p95:g}"


def _money(cost: Mapping[str, Any]) -> str:
    """An amount with its currency, exact to a cent, or below a cent to a millionth; "none" without a price."""
    if cost["value"] is None:
        return _NONE
    value = Decimal(cost["value"])
    shown = value.quantize(_CENTS if value >= _CENTS or not value else _SMALL)
    return f"{shown:,} {cost['currency'].upper()}"
