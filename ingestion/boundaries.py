"""Finds where a passage may start and end: at a paragraph, a sentence, a line or a word.

Sentences end at a closing mark before a blank and a capital, digit or sign, close to
Unicode UAX #29 (rules SB6 to SB11) and linear on any text.
"""

import re
import unicodedata

# A closing mark with its quotes and brackets, then white space and no small letter; CJK needs no blank.
_SENTENCE = re.compile(r"[.!?…؟۔।][\"'”’»)\]]*(?=\s+[^\sa-zà-ÿа-я])|[。！？．][」』”’）]*")
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_WORD = re.compile(r"\s+")
_BLANKS = (" ", "\n", "\t", "\u00a0", "\u3000")
_MOST_JOINED = 16  # characters that a cut steps back at most to keep a letter and its accents together


def last_end(text: str, low: int, high: int) -> int:
    """The best place in `(low, high]` for a passage to end.

    It is the last end of a paragraph there, else of a sentence, else of a line, else of a word. Where
    not even a word ends, it is `high`, or a little before so that no accent or joined emoji is torn off.
    """
    if (paragraph := text.rfind("\n\n", low + 1, high + 2)) > low:
        return paragraph
    sentence = 0
    for found in _SENTENCE.finditer(text, low, min(high + _MOST_JOINED, len(text))):
        if found.end() > high:
            break
        sentence = found.end()
    if sentence > low:
        return sentence
    if (line := text.rfind("\n", low + 1, high + 1)) > low:
        return line
    if (word := max(text.rfind(blank, low + 1, high + 1) for blank in _BLANKS)) > low:
        return word
    for cut in range(high, max(low, high - _MOST_JOINED), -1):
        if not _joined(text, cut):
            return cut
    return high


def first_start(text: str, low: int, high: int) -> int:
    """The best place in `[low, high)` for a passage to begin: the first sentence, else the first word, else `high`."""
    for pattern in (_PARAGRAPH, _SENTENCE, _WORD):
        # One that ends just before `low` begins there.
        for found in pattern.finditer(text, max(0, low - 1), high):
            start = found.end()
            while start < high and text[start].isspace():
                start += 1
            if low <= start < high:
                return start
    return high


def _joined(text: str, cut: int) -> bool:
    """Whether the characters on both sides of `cut` are shown as one (an accent, a joiner, a selector, a skin tone)."""
    if cut >= len(text):
        return False
    after = text[cut]
    return (
        unicodedata.combining(after) != 0
        or after in "\u200c\u200d"
        or text[cut - 1] == "\u200d"
        or "\ufe00" <= after <= "\ufe0f"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )
