"""Writes the texts on which a regular expression would take longest, from the parsed pattern.

For each repetition its body is written many times, behind a text that leads to it and before one at which the match
fails. Ambiguous repetitions take exponential time on such a text, and neighbours that overlap take quadratic time.
"""

import importlib
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.patterns.sources import Pattern

_parser: Any = importlib.import_module("re._parser")
_MANY = 12  # a repetition with a lower limit costs little
_MOST_LITERALS = 24
_COMMON = tuple("a1 \n_!-.,")
_MOST_WORDS = 24
_MOST_BODIES = 12
_FAILING = ("\x00", "", "a")
_CATEGORIES = {
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda letter: letter.isalnum() or letter == "_",
}


class Writer:
    """Writes texts that parts of a pattern match."""

    def __init__(self, pattern: Pattern) -> None:
        text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        flags = pattern.flags if isinstance(pattern.pattern, str) else pattern.flags | re.ASCII
        self.tree = _parser.parse(text, flags & ~re.DEBUG)
        literals = dict.fromkeys(itertools.chain(_literals(self.tree), _COMMON))
        self.alphabet = list(literals)[: _MOST_LITERALS + len(_COMMON)]
        self._words = list(dict.fromkeys(_words(self.tree)))[:_MOST_WORDS]
        self._groups: dict[int, str] = {}

    def written(self, items: Sequence[Any], variant: int = 0, fill: str = "") -> str:
        """A text that the items match, as far as one can tell without looking around.

        `variant` chooses another one. Where a repetition of one letter matches all of `fill`, it is written there.
        """
        return "".join(self._one(str(op), value, variant, fill) for op, value in items)

    def letters(self, op: str, value: Any) -> list[str]:
        """The letters of the alphabet that an item of one letter matches."""
        return [letter for letter in self.alphabet if _matches(op, value, letter)]

    def _one(self, op: str, value: Any, variant: int, fill: str) -> str:
        match op:
            case "LITERAL":
                return chr(value)
            case "NOT_LITERAL" | "ANY" | "IN":
                letters = self.letters(op, value) or _of_set(value)
                return letters[variant % len(letters)] if letters else ""
            case "BRANCH":
                branches = value[1]
                return self.written(branches[variant % len(branches)], variant // len(branches), fill)
            case "SUBPATTERN":
                group, _, _, inner = value
                text = self.written(inner, variant, fill)
                if group is not None:
                    self._groups[group] = text
                return text
            case "ATOMIC_GROUP":
                return self.written(value, variant, fill)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = value
                if low <= len(fill) <= high and _is_letter(inner) and all(_matches(*_item(inner), one) for one in fill):
                    return fill
                return self.written(inner, variant, fill) * int(min(max(low, 1), high))
            case "GROUPREF":
                return self._groups.get(value, "")
            case _:
                return ""  # AT, ASSERT, ASSERT_NOT and the like take up no text

    def repetitions(self) -> Iterator[tuple[str, list[str], str]]:
        """For each long repetition a text before it, the texts of its body, and one that its neighbours match too."""
        yield from self._repetitions(self.tree, "")

    def _repetitions(self, items: Sequence[Any], before: str) -> Iterator[tuple[str, list[str], str]]:
        for at, (code, value) in enumerate(items):
            op = str(code)
            ahead = before + self.written(items[:at])
            behind = self.written(items[at + 1 :])
            if op in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"} and value[0] < value[1] > _MANY:
                yield ahead, self._bodies(value[2]), behind
            for inner in _inside(op, value):
                yield from self._repetitions(inner, ahead)

    def _bodies(self, inner: Sequence[Any]) -> list[str]:
        if _is_letter(inner):
            return self.letters(*_item(inner))[:_MOST_BODIES] or [self.written(inner)]
        plain = (self.written(inner, variant) for variant in range(_MOST_BODIES))
        filled = (self.written(inner, variant, word) for variant in range(_MOST_BODIES) for word in self._words)
        return list(dict.fromkeys(itertools.chain(plain, filled)))[: 2 * _MOST_BODIES]


def attacks(pattern: Pattern, size: int) -> Iterator[str]:
    """Texts of about `size` characters, each once, on which the pattern may take long."""
    seen: set[tuple[str, str, str]] = set()
    for before, body, after in _plans(Writer(pattern)):
        if body and (before, body, after) not in seen:
            seen.add((before, body, after))
            yield before + body * (size // len(body)) + after


def _plans(writer: Writer) -> Iterator[tuple[str, str, str]]:
    """What each text begins with, repeats and ends with."""
    for before, bodies, behind in writer.repetitions():
        for body in bodies:
            for failing in _FAILING:
                yield before, body, failing
            yield before, body, behind[:-1] + "\x00"
            yield "", before + body, "\x00"  # many beginnings of a match
            yield before, body + behind, "\x00"
            yield "a", body, "\x00"
        for first, second in itertools.pairwise(bodies[:6]):
            yield before, first + second, "\x00"
        yield "", before, "\x00"
    whole = [writer.written(writer.tree, variant) for variant in range(8)]
    for text in dict.fromkeys(whole):
        for body in (text, text[:-1], text + " "):
            yield "", body, "\x00"
            yield text, body, ""
    for letter in writer.alphabet:
        yield "", letter, "\x00"
        yield "a", letter, "a"


def _item(items: Sequence[Any]) -> tuple[str, Any]:
    return str(items[0][0]), items[0][1]


def _is_letter(items: Sequence[Any]) -> bool:
    """Whether the items match one letter."""
    return len(items) == 1 and str(items[0][0]) in {"IN", "ANY", "NOT_LITERAL", "LITERAL"}


def _words(items: Sequence[Any]) -> Iterator[str]:
    """The words that are written out in a pattern."""
    word = ""
    for code, value in items:
        if str(code) == "LITERAL":
            word += chr(value)
            continue
        yield from [word] if len(word) > 1 else []
        word = ""
        for inner in _inside(str(code), value):
            yield from _words(inner)
    yield from [word] if len(word) > 1 else []


def _inside(op: str, value: Any) -> Sequence[Sequence[Any]]:
    """The items that an item is made of; one for each branch."""
    match op:
        case "BRANCH":
            return value[1]  # type: ignore[no-any-return]
        case "SUBPATTERN":
            return [value[3]]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [value[2]]
        case "ATOMIC_GROUP":
            return [value]
        case "ASSERT" | "ASSERT_NOT":
            return [value[1]]
    return []


def _literals(items: Sequence[Any]) -> Iterator[str]:
    for code, value in items:
        match str(code):
            case "LITERAL" | "NOT_LITERAL":
                yield chr(value)
            case "IN":
                yield from (chr(inner) for kind, inner in value if str(kind) == "LITERAL")
                yield from (chr(inner[0]) for kind, inner in value if str(kind) == "RANGE")
            case op:
                for inner in _inside(op, value):
                    yield from _literals(inner)


def _matches(op: str, value: Any, letter: str) -> bool:
    match op:
        case "ANY":
            return letter != "\n"
        case "LITERAL":
            return bool(ord(letter) == value)
        case "NOT_LITERAL":
            return bool(ord(letter) != value)
    negated = any(str(kind) == "NEGATE" for kind, _ in value)
    return negated != any(_in(str(kind), inner, letter) for kind, inner in value)


def _in(kind: str, value: Any, letter: str) -> bool:
    if kind == "LITERAL":
        return bool(ord(letter) == value)
    if kind == "RANGE":
        return bool(value[0] <= ord(letter) <= value[1])
    if kind == "CATEGORY":
        name = str(value).replace("_NOT_", "_")
        return bool(_CATEGORIES[name](letter)) != ("_NOT_" in str(value))
    return False


def _of_set(value: Any) -> list[str]:
    """Letters of a set that has none of the alphabet."""
    return [
        chr(inner if str(kind) == "LITERAL" else inner[0]) for kind, inner in value if str(kind) in {"LITERAL", "RANGE"}
    ]
