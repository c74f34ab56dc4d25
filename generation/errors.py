"""The errors of generation."""


class GenerationError(Exception):
    """The base of generation's errors. The message may be shown to a caller."""


class ModelUnavailable(GenerationError):
    """The model is missing or cannot be loaded; the message names the command that fixes it."""


class ContextLengthExceeded(GenerationError):
    """Prompt and requested output together do not fit the context window."""

    def __init__(self, *, prompt_tokens: int, max_tokens: int, context_window: int) -> None:
        super().__init__(
            f"The prompt has {prompt_tokens} tokens and {max_tokens} output tokens were asked for, "
            f"but the model's context window holds {context_window} together."
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
