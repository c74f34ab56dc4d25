"""Where commands go."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """`url` and `key` of a server, or this machine's data dir when `url` is None."""

    url: str | None
    key: str | None
