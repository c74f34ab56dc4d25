"""One comparison of the books with what they must agree with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was compared, and how it came out.

    `expected` is what one side says and `found` what the other does, as counts; None where nothing could be
    compared, which is no mismatch: `detail` says why, as it says what a mismatch is about.
    """

    name: str
    ok: bool
    expected: int | None
    found: int | None
    detail: str


def none_expected(name: str, found: int, detail: str) -> Check:
    """A check that a count of what must not be is 0."""
    return Check(name=name, ok=found == 0, expected=0, found=found, detail=detail)
