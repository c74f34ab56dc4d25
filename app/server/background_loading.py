"""Loads the models in a thread while requests are already served, and closes them at the end."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from app.telemetry.logs import logger

_CLOSE_SECONDS = 10.0  # an import or a read of weights cannot be interrupted

Loader = Callable[[Callable[[str], None]], AbstractContextManager[None]]
"""Returns a context manager that loads the models and closes them; it calls its argument before each step."""


@dataclass(frozen=True, slots=True)
class Step:
    """The step under way: `name` is being loaded, after `done` of `total` steps."""

    name: str
    done: int
    total: int


class BackgroundLoading:
    """One run of a loader in a thread. `start` and `close` it once; its properties may be read from any thread.

    Example:
        >>> loading = BackgroundLoading(loader, steps=("embedder", "index"), on_ready=ready, on_failure=stop)
        >>> loading.start()
        >>> loading.step
        Step(name="embedder", done=0, total=2)
    """

    def __init__(
        self, loader: Loader, *, steps: Sequence[str], on_ready: Callable[[], None], on_failure: Callable[[], None]
    ) -> None:
        """Take the loader, the names of its steps, and callbacks that the thread calls at success and failure."""
        self._loader = loader
        self._steps = tuple(steps)
        self._on_ready = on_ready
        self._on_failure = on_failure
        self._step = Step(self._steps[0], 0, len(self._steps))
        self._failure: BaseException | None = None
        self._ready = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="footnote-loading", daemon=True)

    @property
    def step(self) -> Step:
        """The step under way, or the last one."""
        return self._step

    @property
    def failure(self) -> BaseException | None:
        """The exception that ended the loading; None where none did."""
        return self._failure

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> bool:
        """Close the models; True if the thread has ended.

        A step under way cannot be interrupted: `close` waits 10 s for it, then gives up.
        """
        self._closing.set()
        if self._thread.ident is None:
            return True  # it was never started
        loaded = self._ready.is_set()
        self._thread.join(None if loaded else _CLOSE_SECONDS)
        if self._thread.is_alive():
            logger().warning("loading.abandoned", step=self._step.name)
        return not self._thread.is_alive()

    def _begin(self, name: str) -> None:
        if self._closing.is_set():
            raise _Closing
        self._step = Step(name, self._steps.index(name), len(self._steps))

    def _run(self) -> None:
        try:
            with self._loader(self._begin):
                self._ready.set()
                logger().info("models.ready")
                self._on_ready()
                self._closing.wait()
        except _Closing:
            return
        except BaseException as error:  # noqa: BLE001 - `footnote serve` raises it again
            self._failure = error
            if not self._closing.is_set():
                self._on_failure()


class _Closing(Exception):
    """The process ends before the models were loaded."""
