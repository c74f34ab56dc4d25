"""Puts the log back as it was: the handlers of the root logger and its level, which commands and servers set."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def log_put_back() -> Iterator[None]:
    """What a block sends the log to ends with the block: nothing can be written to a stream of its own, once closed."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    try:
        yield
    finally:
        root.handlers, root.level = handlers, level
