"""The groups in which golden answers are recorded and compared: an application is built once for each of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.golden.application import MODES, Application, mode
from tests.golden.cases import cases_of, kept
from tests.golden.interruptions import interruptions_of, late_cases
from tests.golden.recording import Kept
from tests.golden.specials import kept_special, specials_of

_LATE = 1e-6
"""Seconds: a deadline that has passed before an answer begins."""

_EVERY_SPECIAL = 4
"""The quick test runs every fourth special case."""


@dataclass(frozen=True, slots=True)
class Job:
    """One case that is still to be asked."""

    name: str
    keep: Callable[[Application], Kept]
    quick: bool


def _questions(name: str) -> Iterator[Job]:
    for case in cases_of(name):
        yield Job(case.name, lambda on, case=case: kept(on, case), case.quick)  # type: ignore[misc]


def _specials(name: str) -> Iterator[Job]:
    for number, (special, way, case) in enumerate(specials_of(name)):
        quick = number % _EVERY_SPECIAL == 0
        yield Job(case, lambda on, s=special, w=way, c=case: kept_special(on, s, w, c), quick)  # type: ignore[misc]


def _interruptions(name: str) -> Iterator[Job]:
    for number, (case, keep) in enumerate(interruptions_of(name)):
        yield Job(case, keep, number % _EVERY_SPECIAL == 0)


def _late(name: str) -> Iterator[Job]:
    return (Job(case, keep, quick=True) for case, keep in late_cases(name))


_KINDS = {"questions": _questions, "specials": _specials, "interruptions": _interruptions, "late": _late}
GROUPS = (
    *((kind, name) for kind in ("questions", "specials") for name in MODES),
    *(("interruptions", name) for name in ("quotes", "default", "generated", "strict")),
    ("late", "quotes"),
    ("late", "generated"),
)
"""Kind and answer mode of each group."""


def jobs_of(kind: str, name: str) -> tuple[Job, ...]:
    """The cases of a group."""
    return tuple(_KINDS[kind](name))


def answers_of(
    kind: str, name: str, *, quick: bool | None, library: Path, scratch: Path, part: slice = slice(None)
) -> Iterator[Kept]:
    """What the cases of a group are answered now: the quick ones, the others, or all (None), and a part of them."""
    jobs = [job for job in jobs_of(kind, name) if quick is None or job.quick == quick][part]
    if not jobs:
        return
    settings = {"answer_deadline_s": _LATE} if kind == "late" else {}
    with mode(name, library, scratch, **settings) as application:
        for job in jobs:
            yield job.keep(application)


def all_of(kind: str, name: str, library: Path, scratch: Path) -> list[Kept]:
    """What all cases of a group are answered now, as one call for a process of its own."""
    return list(answers_of(kind, name, quick=None, library=library, scratch=scratch))
