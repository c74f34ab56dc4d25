"""Prints an answer while it streams: prose at once, at its end the lead and the quotes with their marked words."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

# The start or the whole of a line of nothing but bold words and a marker, which may be the lead.
_LEAD_LINE = re.compile(r"\*(?:\*[^*\n]*(?:\*(?:\*[ ]?(?:\[\d*\]?)*)?)?)?")
# Signs of Markdown that a terminal does not show, and the backslashes of `app.answering.quoting.literal`.
_BOLD = re.compile(r"\*\*|\\(?=[<`~\]])")
_QUOTE_SIGN = re.compile(r"^> ?|\\(?=[<`~\]])", re.MULTILINE)
_INDENT = 4


class QuotedAnswer:
    """Prints one answer. A terminal shows it without the signs of Markdown's bold and quotations; a pipe gets Markdown.

    Lines that may be the lead or a quote are held back until `finish`, since their marked words are known only then.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = ""
        self._printed = 0  # characters

    def feed(self, text: str) -> None:
        """Add the next part of the answer's text, and print what is no quote."""
        self._text += text
        self._print_until(self._held_from() if self._console.is_terminal else len(self._text))

    def finish(self, done: Mapping[str, Any]) -> None:
        """Print the rest, given the stream's last event with `lead` and `quoted_spans`; servers may omit both."""
        lead, quotes = done.get("lead"), done.get("quoted_spans", ())
        rest = Text(self._text)
        if lead is not None:
            rest.stylize("bold", lead["start"], lead["end"])
        for mark in (mark for quote in quotes for mark in quote.get("highlights", ())):
            rest.stylize("bold underline", mark["start"], mark["end"])
        if self._printed < len(self._text) and (lead is not None or quotes):
            self._print_lines(rest, after_lead=lead["end"] if lead is not None else 0)
        else:
            self._print_until(len(self._text))
            self._console.print()

    def _held_from(self) -> int:
        """Where the lines begin, up to the end, that may all be a lead, quotes, or empty."""
        held = len(self._text)
        while held > 0:
            start = self._text.rfind("\n", 0, held - 1) + 1
            line = self._text[start:held].rstrip("\n")
            if not (not line or line.startswith(">") or (start == 0 and _LEAD_LINE.fullmatch(line))):
                break
            held = start
        return held

    def _print_until(self, end: int) -> None:
        if end > self._printed:
            self._console.print(Text(self._text[self._printed : end]), end="", soft_wrap=True)
            self._printed = end

    def _print_lines(self, text: Text, *, after_lead: int) -> None:
        """Print what is held, quotes indented; `text` is the whole answer with its styles."""
        at = self._printed
        for line in text[at:].split("\n", include_separator=False, allow_blank=True):
            signs = _BOLD if at < after_lead else _QUOTE_SIGN
            shown = _without(line, signs)
            quoted = line.plain.startswith(">") and at >= after_lead
            self._console.print(Padding(shown, (0, 0, 0, _INDENT)) if quoted and shown.plain else shown)
            at += len(line) + 1


def footnotes(citations: Sequence[Mapping[str, Any]], done: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
    """The footnotes to list, each with what is in doubt about it, "" for a verified one.

    A passage is listed once for each number: a lead and its quote have the same footnote.

    Args:
        citations: All of the answer's, in the order of their markers.
        done: The stream's last event.
    """
    quotes_from = min((quote["start"] for quote in done.get("quoted_spans", ())), default=None)
    found: dict[tuple[Any, ...], tuple[Mapping[str, Any], str]] = {}
    for citation in citations:
        key = tuple(citation[name] for name in ("index", "document_id", "version", "start_char", "end_char"))
        quoted = quotes_from is not None and citation["answer_start"] >= quotes_from
        doubt = "" if citation["verified"] else "word for word" if quoted else "not verified"
        if key not in found or found[key][1] == "not verified":
            found[key] = citation, doubt
    return list(found.values())


def _without(line: Text, signs: re.Pattern[str]) -> Text:
    """A copy of a line that lacks what matches."""
    kept, at = Text(), 0
    for match in signs.finditer(line.plain):
        kept.append_text(line[at : match.start()])
        at = match.end()
    return kept.append_text(line[at:])
