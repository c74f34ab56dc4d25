"""Structured logs without document text, prompts, file names or secrets, at any level.

An exception is logged by its type and its stack frames, since messages, those of libraries too, may quote user text.
Lines of libraries below the level of a warning are dropped for the same reason.
"""

import logging
import sys
import traceback
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import structlog

_OURS = ("footnote", "uvicorn.error")
_CHAIN = 5  # exceptions of a chain of causes, at most


def configure_logging(*, level: str, json: bool) -> None:
    """Write our log lines and those of libraries to standard error, structured, as JSON or as text."""
    renderer: Any = structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=False)
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _frames_alone,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
    handler = _Lines(sys.stderr)
    handler.addFilter(_is_fit)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(allow=()), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "sentence_transformers", "transformers", "uvicorn.access", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class _Lines(logging.StreamHandler[Any]):
    """A handler that loses a line which cannot be written: Python's report of the failure quotes its arguments."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class's name
        pass


@contextmanager
def warnings_alone() -> Iterator[None]:
    """Log only warnings, to standard error, so that a command's standard output is its own.

    Logging that is already configured is left unchanged.
    """
    if structlog.is_configured():
        yield
        return
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _frames_alone,
            structlog.dev.ConsoleRenderer(colors=False),
        ],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger("warning"),
    )
    try:
        yield
    finally:
        structlog.reset_defaults()


def logger() -> Any:
    """The application's logger."""
    return structlog.stdlib.get_logger("footnote")


def _is_fit(record: logging.LogRecord) -> bool:
    """Whether to log a line: ours at any level, those of libraries from warnings on."""
    return record.levelno >= logging.WARNING or record.name in _OURS


def _frames_alone(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace an exception by the types and frames of its chain of causes."""
    given = event.pop("exc_info", None)
    record = event.get("_record")
    if given is None and isinstance(record, logging.LogRecord):
        given, record.exc_info, record.exc_text = record.exc_info, None, None
    error = _exception(given)
    if error is not None:
        event["raised"] = described(error)
    return event


def _exception(given: object) -> BaseException | None:
    if isinstance(given, BaseException):
        return given
    if isinstance(given, tuple):
        return given[1] if isinstance(given[1], BaseException) else None
    return sys.exc_info()[1] if given else None


def described(error: BaseException) -> list[dict[str, object]]:
    """An exception and its causes without messages: `error` is the type, `frames` are `module:line function`."""
    chain: list[dict[str, object]] = []
    at: BaseException | None = error
    while at is not None and len(chain) < _CHAIN:
        chain.append({"error": type(at).__qualname__, "frames": _frames(at.__traceback__)})
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return chain


def _frames(trace: TracebackType | None) -> list[str]:
    return [f"{_module(frame.f_globals)}:{line} {frame.f_code.co_name}" for frame, line in traceback.walk_tb(trace)]


def _module(names: Mapping[str, Any]) -> str:
    return str(names.get("__name__", "?"))
