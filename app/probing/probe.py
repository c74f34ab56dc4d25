"""Measures in the background how well the served language model reads, and says which class it answers in meanwhile."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.answering.generating.model_class import ModelClass
from app.answering.metering.meter import CallsClosed
from app.errors import AppError
from app.ids import new_id
from app.probing.asking import CaseAsking
from app.probing.cases import ProbeCase, cases
from app.probing.reading import ModelReading
from app.probing.results import ProbeResult, ProbeResults
from app.telemetry.logs import logger
from generation.errors import GenerationError

_RETRY_SECONDS = 60.0  # after a server or the database was away, or a budget was spent
_STOP_SECONDS = 5.0

Source = Literal["set", "measured", "measuring", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassStanding:
    """The class that a model answers in, and how it is known.

    Attributes:
        model_class: `QUOTES` until it is known.
        source: It is `set` by the settings or known of the default model, or `measured`; a probe is `measuring` it, or
            it is `unknown` because none has begun.
        result: What the last probe measured; None before.
        done: Cases that the probe under way has asked, of `total`.
        total: All cases.
    """

    model_class: ModelClass
    source: Source
    result: ProbeResult | None
    done: int
    total: int


class ModelProbe:
    """The probe of one loaded model. `close` it once; `standing` may be read from any thread.

    >>> probe.start()
    >>> probe.standing.model_class
    <ModelClass.QUOTES: 'quotes'>
    """

    def __init__(
        self,
        asking: CaseAsking,
        *,
        model: str,
        known: ModelClass | None,
        results: ProbeResults,
        key: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read what an earlier probe measured.

        Args:
            asking: Asks the model.
            model: Its name.
            known: Its class where that needs no probe.
            results: Keeps what is measured.
            key: What this model's result is kept by.
            clock: Unix seconds.
        """
        self._asking = asking
        self._model = model
        self._known = known
        self._results = results
        self._key = key
        self._clock = clock
        self._result = results.find(key)
        self._replies: list[tuple[ProbeCase, str]] = []
        self._closing = threading.Event()
        self._lock = threading.Lock()  # guards `_stop`
        self._stop: Callable[[], None] = lambda: None
        self._thread: threading.Thread | None = None

    @property
    def standing(self) -> ClassStanding:
        """The class that it answers in now."""
        result = self._result
        source: Source = "unknown" if self._thread is None else "measuring"
        found = ModelClass.QUOTES
        if self._known is not None:
            source, found = "set", self._known
        elif result is not None:
            source, found = "measured", result.reading.model_class
        return ClassStanding(
            model_class=found, source=source, result=result, done=len(self._replies), total=len(cases())
        )

    def start(self) -> None:
        """Measure the class in a thread, unless it is known; until then the model answers as one that is unknown."""
        if self._known is None and self._result is None:
            self._thread = threading.Thread(target=self._run, name="footnote-probe", daemon=True)
            self._thread.start()

    def measure(self, on_case: Callable[[int, int], None] = lambda _done, _total: None) -> ProbeResult:
        """Ask the cases that were not asked yet, keep the result, and answer in its class from now on. Blocks.

        Args:
            on_case: Called after each case with the number of cases asked, and of all.

        Raises:
            BudgetExceeded, StoreUnavailable, StorageFull: A call was not reserved; the next time goes on from there.
            GenerationError: The engine refused or did not finish a call.
            CallsClosed: It was closed.
        """
        request_id = new_id("probe")
        for number, case in enumerate(cases()):
            if number < len(self._replies):
                continue
            meter = self._asking.meter(case, request_id=request_id, number=number)
            with self._lock:
                self._stop = meter.close
            if self._closing.is_set():
                raise CallsClosed
            self._replies.append((case, self._asking.reply(case, meter=meter)))
            on_case(len(self._replies), len(cases()))
        result = ProbeResult(model=self._model, measured_at=self._clock(), reading=ModelReading.of(self._replies))
        self._result, self._replies = result, []
        found = result.reading
        logger().info("model.classed", model=self._model, model_class=found.model_class.value, reads=found.reads.value)
        try:
            self._results.keep(self._key, result)
        except OSError as error:
            logger().warning("model.class_not_kept", error=type(error).__name__)
        return result

    def close(self) -> None:
        """End the call under way, and ask no more. Idempotent."""
        self._closing.set()
        with self._lock:
            self._stop()
        if self._thread is not None:
            self._thread.join(timeout=_STOP_SECONDS)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self.measure()
            except CallsClosed:
                return
            except (AppError, GenerationError) as error:
                if not self._closing.is_set():
                    logger().warning("model.not_classed_yet", model=self._model, error=type(error).__name__)
            except Exception as error:  # noqa: BLE001 - quotes go on answering; it is logged
                logger().error("model.not_classed", model=self._model, error=type(error).__name__, exc_info=error)
                return
            else:
                return
            self._closing.wait(_RETRY_SECONDS)
