"""Removes invisible characters from a text and changes nothing else.

Invisible characters can carry instructions that readers do not see (Unicode tag characters, zero-width
runs, bidirectional overrides; CVE-2021-42574), break the equality of words that look the same, or
cannot be stored as UTF-8 at all (lone surrogates). The original file is kept, so nothing is lost.
No composition (NFC) and no case folding: a citation shows what the author wrote.

Offsets refer to the normalised text, so every reader normalises before it counts.
"""

import re
from collections.abc import Sequence

# Every kind of line end becomes `\n`, so that lines do not run together.
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")

_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1f\x7f-\x9f"  # C0 and C1 controls but \t, \n and the line ends above
    "\u00ad"  # soft hyphen: shown only where a line happens to break
    "\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # fillers and format characters
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # zero-width space and joiner, bidi marks, byte order mark
    "\ud800-\udfff"  # lone surrogates
    "\ufdd0-\ufdef\ufff0-\ufffb\ufffe\uffff"  # noncharacters and interlinear annotation
    "\U000e0000-\U000e0fff"  # tags and supplementary variation selectors
    "]+"
)

# Joiners (ZWNJ, ZWJ) and variation selectors shape the letter or emoji before them.
_SHAPERS = re.compile("(?P<before>[^\u200c\u200d\ufe00-\ufe0f]?)(?P<run>[\u200c\u200d\ufe00-\ufe0f]+)")
_WRITING = re.compile("[\ufe00-\ufe0f]?[\u200c\u200d]?")
_ENCLOSABLE = frozenset("0123456789#*")  # keycap emoji: a digit, a selector, U+20E3


def normalise(text: str) -> str:
    r"""`text` with `\n` line ends and without control, zero-width, tag and other invisible characters.

    `\t` and `\n` stay. So do the joiners and variation selectors that Persian, Hindi or an emoji
    are written with: at most one of each, after something they can shape; a run of them, or one
    after a blank or a Latin letter, is hidden data and is removed.

    Idempotent, linear in `len(text)`; the result encodes as UTF-8.
    """
    text = _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text))
    return _SHAPERS.sub(_keep_writing, text)


def origins(text: str, normalised: str) -> Sequence[int]:
    r"""For each character of `normalised`, the result of `normalise(text)`, its index in `text`, and the end last.

    A line end of two characters counts as its first: the index of what follows is two further.

    Example:
        >>> origins("a\r\n\u00adb", "a\nb")
        [0, 1, 4, 5]
    """
    if text == normalised:
        return range(len(text) + 1)
    found: list[int] = []
    at = 0
    for char in normalised:
        while text[at] != char and not (char == "\n" and _LINE_ENDS.match(text, at)):
            at += 1
        found.append(at)
        at += 2 if char == "\n" and text.startswith("\r\n", at) else 1
    return [*found, len(text)]


def _keep_writing(match: re.Match[str]) -> str:
    before = match["before"]
    if not before or before.isspace() or (before.isascii() and before not in _ENCLOSABLE):
        return before
    kept = _WRITING.match(match["run"])
    assert kept is not None, "the pattern matches the empty string"
    return before + kept.group()
