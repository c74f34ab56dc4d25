"""Converts Markdown to plain text, piece by piece: removes the marks and keeps the marked text.

The constructs are CommonMark's (spec.commonmark.org, 0.31) and GitHub's tables. They are recognised by the text
next to a mark, never by a later paragraph, so that text can be shown while it is generated. A footnote marker like
`[1]` is no Markdown and stays.
"""

import re
from collections import Counter

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})[^`\n]*")
# Rules, lines under a heading, and the line between a table's head and its body.
_RULE = re.compile(r"\s*+(?:([-*_])(?:[ \t]*\1){2,}|={2,}|--|\|?[ \t]*+:?-+:?[ \t]*+(?:\|[ \t]*+:?-*:?[ \t]*+)+)\s*+")
_QUOTE = re.compile(r"[ ]{0,3}>[ ]?")
_HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]+")
_BULLET = re.compile(r"([ \t]*)[*+][ \t]+")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*(?:[ \t]+\"[^\"\n]*\")?\)")
_LINK_SO_FAR = re.compile(r"!?\[[^\[\]\n]*(?:\](?:\([^()\s]*(?:[ \t]+(?:\"[^\"\n]*\"?)?)?)?)?")
_NUMBERS = re.compile(r"!?\[[\d\s,;]*\]")
_PLAIN = re.compile(r"[^\n\\`*_~!\[]+")
_ESCAPABLE = "\\`*_{}()#+-.!~>|"  # a bracket stays escaped: `\[1\]` must not become a marker
_MAY_START_A_MARK = " \t#>*+-_=|`~:"
_MOST_HELD = 500  # characters held back; then a possible mark is taken as text


class AsWritten:
    """Passes text on unchanged, piece by piece."""

    def feed(self, text: str) -> str:
        """Take text, return it."""
        return text

    def finish(self) -> str:
        """Nothing was held back."""
        return ""


class PlainText(AsWritten):
    """Converts Markdown to plain text in pieces; the result does not depend on how the text is cut.

    >>> form = PlainText()
    >>> form.feed("Revenue **rose** [1].") + form.finish()
    'Revenue rose [1].'
    """

    def __init__(self) -> None:
        self._held = ""
        self._shown: list[str] = []
        self._at_line_start = True
        self._before = "\n"  # the character before the held ones
        self._fence = ""  # the fence that a block of code is in, "" outside
        self._ticks = 0  # backticks that opened a span of code, 0 outside
        self._open: Counter[str] = Counter()  # emphasis of this paragraph, by its character

    def feed(self, text: str) -> str:
        """Take Markdown, return the plain text that is decided."""
        self._held += text
        return self._advance(final=False)

    def finish(self) -> str:
        """The rest of the plain text."""
        return self._advance(final=True)

    def _advance(self, *, final: bool) -> str:
        while self._held and (self._line_start(final=final) if self._at_line_start else self._inline(final=final)):
            pass
        shown, self._shown = "".join(self._shown), []
        return shown

    def _take(self, length: int, shown: str | None = None) -> bool:
        """Consume the first `length` held characters, and show them or the replacement `shown`."""
        taken = self._held[:length]
        self._shown.append(taken if shown is None else shown)
        self._before = taken[-1:] or self._before
        self._held = self._held[length:]
        return True

    def _line_start(self, *, final: bool) -> bool:
        """Handle the marks that concern a line; False waits for more text."""
        window = self._held[:_MOST_HELD]
        line, newline, _ = window.partition("\n")
        whole = bool(newline) or (final and len(self._held) < _MOST_HELD)
        undecided = not line.strip(_MAY_START_A_MARK) or line.lstrip().startswith(("```", "~~~"))
        if undecided and not whole and len(window) < _MOST_HELD:
            return False
        fence = _FENCE.fullmatch(line) if whole else None
        if fence is not None and fence[1].startswith(self._fence):
            self._fence = "" if self._fence else fence[1]
            return self._take(len(line) + len(newline), "")
        if whole and not self._fence and _RULE.fullmatch(line):
            return self._take(len(line) + len(newline), "")
        self._at_line_start = False
        return self._fence != "" or self._prefix(line)

    def _prefix(self, line: str) -> bool:
        """Handle the marks at the beginning of a line of text."""
        at = 0
        while quote := _QUOTE.match(line, at):
            at = quote.end()
        if heading := _HEADING.match(line, at):
            return self._take(heading.end(), "")
        if bullet := _BULLET.match(line, at):
            return self._take(bullet.end(), f"{bullet[1]}- ")
        return self._take(at, "")

    def _inline(self, *, final: bool) -> bool:
        """Handle marks within a line; False waits for more text."""
        first = self._held[0]
        if first == "\n":
            if self._before == "\n":
                self._open.clear()
            self._at_line_start, self._ticks = True, 0
            return self._take(1)
        if self._fence:
            return self._take(len(self._held.partition("\n")[0]))
        if first == "`":
            return self._backticks(final=final)
        if self._ticks:
            return self._take(len(re.split(r"[`\n]", self._held, maxsplit=1)[0]))
        return self._mark(first, final=final)

    def _mark(self, first: str, *, final: bool) -> bool:
        """Handle marks outside of code."""
        if first in "*_~":
            return self._emphasis(first, final=final)
        if first in "[!":
            return self._bracket(final=final)
        if first == "\\":
            escaped = self._held[1:2]
            if not escaped and not final:
                return False
            return self._take(2, escaped) if escaped and escaped in _ESCAPABLE else self._take(1)
        plain = _PLAIN.match(self._held)
        assert plain is not None, "every other character was seen to"
        return self._take(plain.end())

    def _run(self, char: str, *, final: bool) -> int:
        """The length of the held run of `char`, 0 while it may still grow."""
        window = self._held[:_MOST_HELD]
        run = len(window) - len(window.lstrip(char))
        return run if final or run < len(self._held) or run == _MOST_HELD else 0

    def _backticks(self, *, final: bool) -> bool:
        run = self._run("`", final=final)
        if not run:
            return False
        if run == _MOST_HELD or (self._ticks and run != self._ticks):
            return self._take(run)
        self._ticks = 0 if self._ticks else run
        return self._take(run, "")

    def _emphasis(self, char: str, *, final: bool) -> bool:
        """Remove a run of delimiters that touches a word on one side only, as emphasis does (CommonMark 6.2)."""
        run = self._run(char, final=final)
        if not run:
            return False
        before, after = self._before, self._held[run : run + 1] or "\n"
        if run == _MOST_HELD or (char == "~" and run != 2) or (before.isspace() and after.isspace()):
            return self._take(run)
        if before.isalnum() and after.isalnum():  # snake_case, 2*3
            return self._take(run)
        opens = not after.isspace() and (before.isspace() or not (self._open[char] or before.isalnum()))
        if not opens and not self._open[char]:
            return self._take(run)
        self._open[char] += 1 if opens else -1
        return self._take(run, "")

    def _bracket(self, *, final: bool) -> bool:
        window = self._held[:_MOST_HELD]
        if not final and window == "!":
            return False
        if not _NUMBERS.match(window):
            link = _LINK.match(window)
            if link is not None:
                self._held = link[1] + self._held[link.end() :]  # its text may be marked up itself
                return True
            if not final and len(window) < _MOST_HELD and _LINK_SO_FAR.fullmatch(window):
                return False
        return self._take(1)
