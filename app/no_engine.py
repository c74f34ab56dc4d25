"""What stands in the engine's place where no language model is served: it says so, and takes no sequence."""

from collections.abc import Sequence

from app.settings import EXTRACTIVE
from generation.errors import EngineStopped
from generation.ports import Observer, Stream
from generation.types import EngineStats, GenerationRequest, ModelInfo

_NOTHING = EngineStats(waiting=0, running=0, capacity=0, prefill_tokens=0, decode_tokens=0, requests=0, cancelled=0)


class NoEngine:
    """Implements `Engine` without a model. Answers are quoted, so nobody has reason to call `submit`."""

    def __init__(self, *, revision: str, context_window: int) -> None:
        """`revision` identifies what chooses the quotes; `context_window` tokens of the sources are read at most."""
        self._info = ModelInfo(
            model=EXTRACTIVE, revision=revision, context_window=context_window, device="none", dtype="none"
        )

    @property
    def info(self) -> ModelInfo:
        """That sentences are extracted."""
        return self._info

    def submit(self, request: GenerationRequest, *, observer: Observer) -> Stream:  # noqa: ARG002 - the port's
        """Take nothing.

        Raises:
            EngineStopped: Always.
        """
        raise EngineStopped("This server has no language model.")

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:  # noqa: ARG002 - the port's
        """None."""
        return 0

    def stats(self) -> EngineStats:
        """That nothing runs, waits or was ever generated."""
        return _NOTHING

    def alive(self) -> bool:
        """There is nothing that could have died."""
        return True

    def close(self) -> None:
        """There is nothing to release."""
