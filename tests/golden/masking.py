"""Masks what differs between two runs of the same code: identifiers, times, and the last digits of numbers."""

import re
from collections.abc import Mapping

_ID = re.compile(r"\b([a-z]+)_[0-9abcdefghjkmnpqrstvwxyz]{26}\b")
"""An identifier by `app.ids.new_id`."""

_TIMES = re.compile(r'("(?:created|created_at|reset_at)": ?)(?:\d+|"[^"]*")')
_TIMINGS = re.compile(r'("timings_ms": ?)(\{[^{}]*\})')
_MILLISECONDS = re.compile(r'("\w+": ?)-?[\d.]+(?:e-?\d+)?')
_FINGERPRINT = re.compile(r"\bfp_[0-9a-f]{12}\b")
"""OpenAI's fingerprint changes with each version of the package."""

_LONG_NUMBER = re.compile(r"-?\d+\.\d{7,}(?:e-?\d+)?|-?\d+(?:\.\d+)?e-\d+")
"""A number that was computed in floating point: its last digits depend on the processor."""

_COLUMNS = frozenset(
    {
        "accepted_at",
        "boot_id",
        "cited_at",
        "ended_at",
        "first_token_at",
        "gpu_us",
        "settled_at",
        "total_us",
        "ttft_us",
    }
)
"""Columns of the ledger with times, and the process that wrote the row."""


class Masks:
    """Masks the texts and rows of one case; the same identifier has the same placeholder in all of them.

    Example:
        >>> Masks().text('{"id":"req_01jd2x8k3vq5zt7m9n4r6s8w0y","created":1764184000}')
        '{"id":"<req-1>","created":<time>}'
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def text(self, text: str) -> str:
        """The text with placeholders."""
        text = _ID.sub(self._placeholder, text)
        text = _TIMES.sub(r"\1<time>", text)
        text = _TIMINGS.sub(lambda found: found[1] + _MILLISECONDS.sub(r"\1<ms>", found[2]), text)
        text = _FINGERPRINT.sub("<fingerprint>", text)
        return _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.6g}", text)

    def row(self, table: str, row: Mapping[str, object]) -> dict[str, object]:
        """A row of the ledger with its table; a masked column stays null where it is null."""
        kept: dict[str, object] = {"table": table}
        for column, value in row.items():
            if column in _COLUMNS and value is not None:
                kept[column] = "<masked>"
            else:
                kept[column] = self.text(value) if isinstance(value, str) else value
        return kept

    def _placeholder(self, found: "re.Match[str]") -> str:
        if found[0] not in self._known:
            kind = found[1]
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known[found[0]] = f"<{kind}-{self._counts[kind]}>"
        return self._known[found[0]]
