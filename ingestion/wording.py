"""Compares two wordings of a passage word by word: what both have, what was removed, what was added.

Marks are words of their own, and white space belongs to the word before it, so that a comma that was added is one run.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from retrieval.words import UNSPACED

RunKind = Literal["equal", "removed", "added"]

_TOKEN = re.compile(rf"(?:[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s])\s*")
_BARE = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
_MOST_WORDS = 2_000  # of either wording that are compared; a longer passage is shown as replaced


@dataclass(frozen=True, slots=True)
class WordRun:
    """Words of one kind that follow each other. Of equal ones `text` is that of the new wording."""

    kind: RunKind
    text: str


def bare_words(text: str) -> list[str]:
    """The words of `text` without marks, in small letters; each character of a script without spaces is one."""
    return _BARE.findall(text.casefold())


def changes(old: str, new: str) -> tuple[WordRun, ...]:
    """The runs of both wordings, in reading order; what was removed stands before what was added.

    The texts of `equal` and `added` runs are together `new`, and those of `equal` and `removed` ones `old` but for
    white space.

    Example:
        >>> changes("The fee is 30 euros.", "The fee is 35 euros.")[1:3]
        (WordRun(kind='removed', text='30 '), WordRun(kind='added', text='35 '))
    """
    before, after = _tokens(old), _tokens(new)
    if max(len(before), len(after)) > _MOST_WORDS:
        return tuple(_runs([("removed", before), ("added", after)]))
    matcher = SequenceMatcher(None, [*map(str.strip, before)], [*map(str.strip, after)], autojunk=False)
    found: list[tuple[RunKind, Sequence[str]]] = []
    for tag, first, last, other_first, other_last in matcher.get_opcodes():
        if tag == "equal":
            found.append(("equal", after[other_first:other_last]))
        else:
            found += [("removed", before[first:last]), ("added", after[other_first:other_last])]
    return tuple(_runs(found))


def _tokens(text: str) -> list[str]:
    """All of `text` in words; white space before the first one belongs to it."""
    tokens = _TOKEN.findall(text)
    if tokens and not text.startswith(tokens[0]):
        tokens[0] = text[: len(text) - len(text.lstrip())] + tokens[0]
    return tokens or ([text] if text else [])


def _runs(found: Sequence[tuple[RunKind, Sequence[str]]]) -> Iterator[WordRun]:
    for kind, tokens in found:
        text = "".join(tokens)
        if text:
            yield WordRun(kind, text)
