"""What every scripted engine says of itself."""

from collections.abc import Sequence

from generation.types import EngineStats


class IdleEngine:
    """All of `Engine` but what it is and what it answers: nothing is cached, nothing waits, nothing runs."""

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:
        return 0

    def stats(self) -> EngineStats:
        return EngineStats(waiting=0, running=0, capacity=1, prefill_tokens=0, decode_tokens=0, requests=0, cancelled=0)

    def alive(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing runs."""
