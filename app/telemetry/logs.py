"""Structured logs. No document text, prompt, file name or secret goes into them, whatever the level.

An exception is logged by its type and its frames: messages may quote what was asked, and those of libraries are not
ours to vouch for. Libraries' lines below a warning are dropped for the same reason.
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
_CHAIN = 5  # exceptions that led to one another, at most


def configure_logging(*, level: str, json: bool) -> None:
    """Write structured log lines to standard error, our own and the libraries'."""
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
    handler = logging.StreamHandler(sys.stderr)
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


@contextmanager
def warnings_alone() -> Iterator[None]:
    """Within a command, the application says no more than warnings, on standard error: the output is the command's.

    Logging that is configured already stays as it is.
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
    """Whether a line may be shown: ours at any level, a library's from a warning on."""
    return record.levelno >= logging.WARNING or record.name in _OURS


def _frames_alone(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Put types and frames in an exception's place."""
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
    """An exception and what led to it, without messages: `error`, its type, and `frames`, `module:line function`."""
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
