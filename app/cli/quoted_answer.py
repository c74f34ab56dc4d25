"""Prints an answer while it streams: what a model writes at once, at the end its lead, its quotes and its notes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

# Signs of Markdown that a terminal does not show, and the backslashes of `app.answering.quoting.literal`.
_SIGNS = {
    "lead": re.compile(r"\*\*|\\(?=[<`~\]])"),
    "quote": re.compile(r"^> ?|\\(?=[<`~\]])"),
    None: re.compile(r"^>"),  # between quotes
}
_INDENT = 4


class QuotedAnswer:
    """Prints one answer. A terminal shows it without the signs of Markdown's bold and quotations; a pipe gets Markdown.

    What comes whole is held back until `finish`, since only then is known what it consists of.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = ""
        self._printed = 0  # characters

    def feed(self, text: str, *, part: int | None = None) -> None:
        """Add the next piece of the answer's text, and print it if it belongs to a `part` that is being written."""
        self._text += text
        if part is not None or not self._console.is_terminal:
            self._print_until(len(self._text))

    def finish(self, done: Mapping[str, Any]) -> None:
        """Print the rest, given the stream's last event with the `parts` of the answer; older servers have none."""
        parts = done.get("parts", ())
        if parts and self._printed < len(self._text):
            self._print_lines(Text(self._text), parts)
        else:
            self._print_until(len(self._text))
            self._console.print()

    def _print_until(self, end: int) -> None:
        if end > self._printed:
            self._console.print(Text(self._text[self._printed : end]), end="", soft_wrap=True)
            self._printed = end

    def _print_lines(self, text: Text, parts: Sequence[Mapping[str, Any]]) -> None:
        """Print what is held, quotes indented; `text` is the whole answer."""
        for part in parts:
            if part["kind"] == "lead":
                text.stylize("bold", part["words"]["start"], part["words"]["end"])
            for mark in part.get("highlights", ()):
                text.stylize("bold underline", mark["start"], mark["end"])
        at = self._printed
        for line in text[at:].split("\n", include_separator=False, allow_blank=True):
            end = at + len(line)
            kind = next((part["kind"] for part in parts if part["start"] < end and at < part["end"]), None)
            shown = _without(line, _SIGNS[kind]) if kind in _SIGNS else line
            self._console.print(Padding(shown, (0, 0, 0, _INDENT)) if kind == "quote" else shown)
            at = end + 1


def print_quotes(console: Console, quotes: Mapping[str, Any]) -> None:
    """Print the stream's event `quotes`, shown until a model has worded the answer; in a terminal alone."""
    if not console.is_terminal:
        return
    console.print(Text("Your documents say:", style="dim"))
    shown = QuotedAnswer(console)
    shown.feed(quotes["answer"])
    shown.finish(quotes)
    console.print()


def footnotes(citations: Sequence[Mapping[str, Any]], done: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
    """The footnotes to list, each with what is in doubt about it, "" for a verified one.

    A passage is listed once for each number: a lead and its quote have the same footnote.

    Args:
        citations: All of the answer's, in the order of their markers.
        done: The stream's last event.
    """
    exact = {at for part in done.get("parts", ()) if part["kind"] == "quote" for at in part["citations"]}
    found: dict[tuple[Any, ...], tuple[Mapping[str, Any], str]] = {}
    for at, citation in enumerate(citations):
        key = tuple(citation[name] for name in ("index", "document_id", "version", "start_char", "end_char"))
        doubt = "" if citation["verified"] else "word for word" if at in exact else "not verified"
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
