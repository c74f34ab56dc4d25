"""The errors of generation.

Their messages are sentences for callers: none names a path, a prompt or a stack.
"""


class GenerationError(Exception):
    """The base of generation's errors. The message may be shown to a caller."""


class ModelUnavailable(GenerationError):
    """The model is missing or cannot be loaded; the message names the command that fixes it."""


class ContextLengthExceeded(GenerationError):
    """Prompt and requested output together do not fit the context window."""

    def __init__(self, *, prompt_tokens: int, max_tokens: int, context_window: int) -> None:
        asked = f"{prompt_tokens:,} tokens to read"
        if max_tokens:
            asked += f" and up to {max_tokens:,} to write"
        super().__init__(
            f"This is too long for the model: {asked}, where its context window holds {context_window:,}. "
            "Ask a shorter question, begin a new conversation, or ask for a shorter answer."
        )
        self.prompt_tokens = prompt_tokens
        self.max_tokens = max_tokens
        self.context_window = context_window


class EngineFull(GenerationError):
    """Too many sequences wait already; retry after `retry_after_s` seconds."""

    def __init__(self, *, retry_after_s: int) -> None:
        super().__init__("The generation queue is full.")
        self.retry_after_s = retry_after_s


class EngineOutOfMemory(GenerationError):
    """The device had no memory for a sequence; others go on, and the next one may fit."""

    def __init__(self) -> None:
        super().__init__("The engine ran out of memory on this request; ask for less, or try again in a moment.")


class EngineStopped(GenerationError):
    """The engine was shut down or its thread died; nothing new is accepted."""

    def __init__(self, message: str = "The generation engine stopped unexpectedly.") -> None:
        super().__init__(message)


class ConstraintInvalid(GenerationError):
    """A request's constraint on its output cannot be compiled; the message says why."""


def failure(error: str) -> GenerationError:
    """The exception that a completion's `error` text stands for."""
    for known in (EngineOutOfMemory(), EngineStopped()):
        if error == str(known):
            return known
    return GenerationError(error)
