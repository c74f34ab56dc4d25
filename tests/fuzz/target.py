"""A target of the fuzzer: cases that a grammar makes, and the promise that each of them must keep."""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeAlias, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

Case: TypeAlias = dict[str, Any]
"""A case as JSON, so that it can be kept in a file; bytes are written as Latin-1 text."""

_Whole = TypeVar("_Whole", str, bytes)


class Target(Protocol):
    """Something that is fuzzed."""

    name: str
    cases: SearchStrategy[Case]
    answers: Counter[tuple[str, int]]
    """The requests that were sent, by operation and status; empty where none are."""

    def check(self, case: Case) -> None:
        """Raise an exception, of any kind, where the case breaks a promise."""
        ...


@dataclass(frozen=True, slots=True)
class Fault:
    """A case that broke a promise, and the first line that was said of it."""

    target: str
    case: Case
    said: str


@dataclass(frozen=True, slots=True)
class Hunted:
    """The number of cases that were tried, and the smallest one that broke a promise."""

    cases: int
    fault: Fault | None


def hunt(target: Target, *, seed: int, examples: int) -> Hunted:
    """Try `examples` random cases; where one fails, make it smaller for as long as it fails.

    Raises:
        Exception: The grammar itself failed, before any case was tried.
    """
    tried = 0
    failed: list[Fault] = []

    @hypothesis.seed(seed)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(target.cases)
    def attempt(case: Case) -> None:
        nonlocal tried
        tried += 1
        fault = tried_once(target, case)
        if fault is not None:
            failed.append(fault)
            raise AssertionError(fault.said)

    try:
        attempt()
    except Exception:
        if not failed:
            raise
    return Hunted(tried, failed[-1] if failed else None)  # the last failure of a search is its smallest


def tried_once(target: Target, case: Case) -> Fault | None:
    """The fault of one case, None where it keeps its promise."""
    try:
        target.check(case)
    except Exception as error:  # noqa: BLE001 - any exception is a broken promise
        first = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        return Fault(target.name, case, first[:300])
    return None


def cut_up(whole: _Whole, cuts: list[int]) -> list[_Whole]:
    """A text or bytes in pieces that end at `cuts`; they may be empty."""
    at = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    return [whole[start:stop] for start, stop in pairwise(at)]


def as_text(data: bytes) -> str:
    """Bytes as the text that stands for them in a case."""
    return data.decode("latin-1")


def as_bytes(text: str) -> bytes:
    """The bytes that a text in a case stands for."""
    return text.encode("latin-1")
