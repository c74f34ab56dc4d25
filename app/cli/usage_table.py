"""Formats usage and cost as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from rich.table import Table
from rich.text import Text

_SHOWN = Decimal("0.000001")

NUMBERS: Mapping[str, Mapping[str, str]] = {
    "all": {
        "calls": "num_model_requests",
        "read": "input_tokens",
        "cached": "input_cached_tokens",
        "written": "output_tokens",
        "unpriced": "num_unpriced",
    },
    "completions": {
        "requests": "num_model_requests",
        "input": "input_tokens",
        "cached": "input_cached_tokens",
        "output": "output_tokens",
        "aborted": "num_aborted",
        "unpriced": "num_unpriced",
    },
    "embeddings": {"requests": "num_model_requests", "input": "input_tokens", "unpriced": "num_unpriced"},
    "rerank": {"requests": "num_model_requests", "input": "input_tokens", "unpriced": "num_unpriced"},
    "judge": {"requests": "num_model_requests", "input": "input_tokens", "unpriced": "num_unpriced"},
    "costs": {"tokens": "quantity", "unpriced": "num_unpriced"},
}
"""The columns of each report, by their heading, and what they show of a result."""


@dataclass(slots=True)
class Sum:
    """A running total of counts and cost; the cost is None until a priced row is added."""

    numbers: list[int | None]
    cost: Decimal | None = None
    currency: str = field(default="", compare=False)

    def add(self, numbers: Iterable[int | None], cost: Decimal | None) -> None:
        """Adds a result; a count is unknown only while all added counts are unknown."""
        self.numbers = [
            number if so_far is None else so_far + (number or 0)
            for so_far, number in zip(self.numbers, numbers, strict=True)
        ]
        if cost is not None:
            self.cost = cost if self.cost is None else self.cost + cost


@dataclass(frozen=True, slots=True)
class Whole:
    """The sums of the report of all calls over its range; `unpriced` of the `calls` had no price."""

    answers: int
    calls: int
    read: int
    written: int
    unpriced: int
    currency: str

    @classmethod
    def of(cls, results: Iterable[Mapping[str, Any]]) -> "Whole":
        """The sums of ungrouped results."""
        found = list(results)

        def whole(name: str) -> int:
            return sum(result[name] or 0 for result in found)

        return cls(
            answers=whole("num_answers"),
            calls=whole("num_model_requests"),
            read=whole("input_tokens"),
            written=whole("output_tokens"),
            unpriced=whole("num_unpriced"),
            currency=found[0]["cost"]["currency"] if found else "",
        )


def answers_text(whole: Whole) -> str:
    """The line above a report, as in `3 answers; 3,194 tokens read and 0 written by 9 model calls.`."""
    answers = "1 answer" if whole.answers == 1 else f"{count(whole.answers)} answers"
    calls = "1 model call" if whole.calls == 1 else f"{count(whole.calls)} model calls"
    if not whole.calls:
        return f"{answers}; no model was called." if whole.answers else "Nothing was asked, and no model was called."
    return f"{answers}; {count(whole.read)} tokens read and {count(whole.written)} written by {calls}."


def price_hint(whole: Whole) -> str | None:
    """What to do about calls without a price; where none has one, what a price would make of the tokens."""
    if not whole.unpriced:
        return None
    calls = "1 call has" if whole.unpriced == 1 else f"{count(whole.unpriced)} calls have"
    said = f"{calls} no price: `footnote prices set` sets one, `footnote prices rerate` applies it to past calls."
    if whole.unpriced < whole.calls:
        return said
    example = money_text(Decimal(whole.read + whole.written) / 1_000_000)
    return f"{said} At 1 {whole.currency} per million tokens it would be {example} {whole.currency}."


def report_table(
    buckets: Iterable[Mapping[str, Any]], *, of: str, by: Sequence[str], width: str | None
) -> Table | None:
    """One row per group, or per group and bucket with a `width`, and a total row; None when there is no usage."""
    columns = NUMBERS[of]
    sums: dict[tuple[str, ...], Sum] = {}
    total = Sum([None] * len(columns))
    currency = ""
    for bucket in buckets:
        for result in bucket["results"]:
            money = result["amount" if of == "costs" else "cost"]
            cost, currency = None if money["value"] is None else Decimal(money["value"]), money["currency"]
            key = (*(() if width is None else (local(bucket["start_local"], width),)), *(named(result[x]) for x in by))
            numbers = [result[name] for name in columns.values()]
            for each in (sums.setdefault(key, Sum([None] * len(columns))), total):
                each.add(numbers, cost)
    if not sums:
        return None
    headings = [*([] if width is None else ["from"]), *(name.removesuffix("_id") for name in by)]
    table = numbers_table(headings, [*columns], currency)
    order = sorted(sums, key=lambda key: key[:1]) if width is not None else _dearest_first(sums)
    for key in order:
        table.add_row(*map(Text, key), *map(count, sums[key].numbers), money_text(sums[key].cost))
    foot(table, total, texts=len(headings))
    return table


def numbers_table(texts: Sequence[str], numbers: Sequence[str], currency: str) -> Table:
    """A table of text columns, then number columns, then cost, numbers aligned right."""
    table = Table(box=None, pad_edge=False, show_footer=True, footer_style="bold")
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in (*numbers, f"cost ({currency})" if currency else "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def foot(table: Table, total: Sum, *, texts: int) -> None:
    """Adds the total below the number columns."""
    cells = [*map(count, total.numbers), money_text(total.cost)]
    for column, cell in zip(table.columns[texts:], cells, strict=True):
        column.footer = cell
    if texts:
        table.columns[0].footer = "total"


def count(number: int | None) -> str:
    """Formats a count as `1,234,567`, or `-` when it is unknown."""
    return "-" if number is None else f"{number:,}"


def money_text(amount: Decimal | None) -> str:
    """Formats money as `1,234.567890`, or `unpriced`. Six decimals; CSV files have all twelve."""
    if amount is None:
        return "unpriced"
    if amount and abs(amount) < _SHOWN:
        return f"<{_SHOWN}" if amount > 0 else f">-{_SHOWN}"
    return f"{amount.quantize(_SHOWN):,}"


def local(moment: str, width: str) -> str:
    """Formats a bucket's local start as precisely as its width needs."""
    return moment[: {"1mo": 7, "1d": 10}.get(width, 16)].replace("T", " ")


def named(value: str | None) -> str:
    """A group's name, or `-`."""
    return value or "-"


def _dearest_first(sums: Mapping[tuple[str, ...], Sum]) -> Iterator[tuple[str, ...]]:
    """Sorts groups by cost, then by counts, largest first."""

    def weight(key: tuple[str, ...]) -> tuple[Decimal, list[int]]:
        one = sums[key]
        return one.cost or Decimal(0), [number or 0 for number in one.numbers]

    yield from sorted(sorted(sums), key=weight, reverse=True)
