"""A thread that loads the models while requests are served already, holds them, and closes them at the end."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from app.telemetry.logs import logger

_CLOSE_SECONDS = 10.0  # an import or a read of weights cannot be interrupted

Loader = Callable[[Callable[[str], None]], AbstractContextManager[None]]
"""Makes the context in which models are there; calls back before each step."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is being loaded, after `done` of `total` steps."""

    name: str
    done: int
    total: int


class BackgroundLoading:
    """One loading; `start` and `close` it once. What it shows may be read from any thread."""

    def __init__(
        self, loader: Loader, *, steps: Sequence[str], on_ready: Callable[[], None], on_failure: Callable[[], None]
    ) -> None:
        """Load by `loader`, which names its `steps`; the thread tells of its success or failure."""
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
        """What is being loaded, or was last."""
        return self._step

    @property
    def ready(self) -> bool:
        """Whether everything is loaded."""
        return self._ready.is_set()

    @property
    def failure(self) -> BaseException | None:
        """Why it ended without models."""
        return self._failure

    def start(self) -> None:
        """Begin to load."""
        self._thread.start()

    def close(self) -> bool:
        """Close what was loaded; whether that is done.

        A step of the loading that is under way cannot be interrupted and is waited for ten seconds only.
        """
        self._closing.set()
        if self._thread.ident is None:
            return True  # it was never begun
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
        except BaseException as error:  # noqa: BLE001 - it is raised again by whoever waits for the process's end
            self._failure = error
            if not self._closing.is_set():
                self._on_failure()


class _Closing(Exception):
    """The process ends before the models were loaded."""
