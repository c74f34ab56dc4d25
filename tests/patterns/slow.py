"""Finds the texts on which a pattern's time grows faster than their length."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.patterns.attacks import attacks
from tests.patterns.growth import TooLongError, limited, seconds
from tests.patterns.sources import SCANS, Pattern, Use

CHARACTERS = 4_096
_QUICK_S = 1.2e-7  # for a character: at 4,096 of them quadratic time is more than ten times as long
_TOO_LONG_S = 0.5  # CPU seconds for a few runs on one text of `CHARACTERS`
_DOUBLED = 2.6  # times as long for twice the characters: linear is 2, quadratic 4
_NOISE_S = 0.001
_ATTEMPTS = 4


def slow_texts(use: Use, characters: int = CHARACTERS) -> Iterator[str]:
    """What is wrong with a pattern, in words: for each method the first text whose time is not linear."""
    for method in sorted(_distinct(use)):
        call = _caller(use.pattern, method)
        longer = attacks(use.pattern, 2 * characters)
        for text, twice in zip(attacks(use.pattern, characters), longer, strict=True):
            if (finding := _finding(call, text, twice)) is not None:
                yield f"{use.place}: {method} on {_shown(text)} {finding}"
                break


def longest_seconds(use: Use, characters: int) -> tuple[float, str]:
    """The longest time for a text of so many characters, with what took it."""
    worst = (0.0, "")
    for method in sorted(_distinct(use)):
        for text in attacks(use.pattern, characters):
            call = partial(_caller(use.pattern, method), text)
            try:
                with limited(_TOO_LONG_S):
                    taken = seconds(call, repeats=1)
                    if taken > worst[0]:
                        taken = min(taken, seconds(call))
            except TooLongError:
                taken = _TOO_LONG_S
            worst = max(worst, (taken, f"{method} on {_shown(text)}"))
    return worst


def _distinct(use: Use) -> set[str]:
    """The methods that differ: every one that looks for all matches is one."""
    return {method if method in {"search", "match", "fullmatch"} else "finditer" for method in use.methods}


def _caller(pattern: Pattern, method: str) -> Callable[[str], object]:
    """A function that gives a text to a pattern as `method` does."""

    def call(text: str) -> object:
        subject: Any = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
        if method in SCANS - {"search"}:
            return deque(pattern.finditer(subject), maxlen=0)
        return getattr(pattern, method)(subject)

    return call


def _finding(call: Callable[[str], object], text: str, twice: str) -> str | None:
    """What is wrong with the time for a text and for one twice as long; None where it is linear."""
    too_long = _TOO_LONG_S * max(1.0, len(text) / CHARACTERS)
    try:
        for _ in range(_ATTEMPTS):
            with limited(too_long):
                if (once := seconds(lambda: call(text), repeats=1)) < _QUICK_S * len(text):
                    return None
                once = min(once, seconds(lambda: call(text)))
                doubled = seconds(lambda: call(twice))
            if doubled <= _DOUBLED * once + _NOISE_S:
                return None
    except TooLongError:
        return f"takes more than {too_long:g} s for {len(text):,} characters"
    return f"takes {1000 * once:.1f} ms for {len(text):,} characters and {1000 * doubled:.1f} ms for {len(twice):,}"


def _shown(text: str) -> str:
    return f"{text[:40]!r}...{text[-12:]!r}"
