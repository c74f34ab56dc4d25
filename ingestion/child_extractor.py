"""Extracts files in child processes that can be killed, so that a hostile file cannot harm the server."""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import LifoQueue
from threading import Lock, Timer
from types import TracebackType
from typing import Protocol, Self, TypeVar

from ingestion.errors import IngestionError
from ingestion.messages import Request
from ingestion.parser_process import ParserFailed, ParserProcess
from ingestion.ports import Extractor
from ingestion.types import Extraction, ExtractionLimits, PageBoxes, PageSpan

_Answer = TypeVar("_Answer")


class ChildExtractor:
    """An `Extractor` in a child process, started when first needed and reused from file to file.

    One file at a time; callers on other threads wait. The child is killed, with all it started, when
    it takes longer or more memory than the limits allow, replaced after `recycle_after` files
    (libraries leak), and closed after `idle_seconds` without one (it holds a few hundred MB).

    Scanned pages have extra time: the child reports when one begins, which gives it
    `ocr_page_seconds` from then on, the last one `seconds` more for the rest. At most
    `ocr_pages` reports count, so no child runs forever.
    """

    def __init__(
        self,
        limits: ExtractionLimits | None = None,
        *,
        recycle_after: int = 50,
        idle_seconds: float = 60.0,
        soffice: Path | None = None,
        module: str = "ingestion.child",
    ) -> None:
        """`soffice` is LibreOffice's program (`find_soffice`), for the legacy formats; without it they are refused."""
        self._limits = limits or ExtractionLimits()
        self._recycle_after = recycle_after
        self._idle_seconds = idle_seconds
        self._command = [module, *([str(soffice)] if soffice else [])]
        self._lock = Lock()
        self._child: ParserProcess | None = None
        self._served = 0  # by this child
        self._used_at = 0.0
        self._idle: Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        """See `ports.Extractor`.

        Raises:
            LimitExceeded: Also when it took too long or too much memory.
            ParserCrashed: The child died on this file; the next one gets a new child.
        """
        return self._asked(ParserProcess.ask, Request(path.absolute(), filename, self._limits, password))

    def locate(self, path: Path, spans: Sequence[PageSpan], *, password: str | None = None) -> tuple[PageBoxes, ...]:
        """Locates spans of text on the pages of a PDF, in order; pages that cannot be loaded are left out.

        Raises:
            IngestionError: As `extract`.
        """
        assert spans, "there is something to find"
        request = Request(path.absolute(), "", self._limits, password, tuple(spans))
        return self._asked(ParserProcess.locate, request).pages

    def _asked(self, ask: Callable[[ParserProcess, Request], _Answer], request: Request) -> _Answer:
        with self._lock:
            try:
                return self._ask(ask, request)
            finally:
                if self._served >= self._recycle_after:
                    self._stop()
                self._used_at = time.monotonic()
                if self._child and self._idle is None:
                    self._arm(self._idle_seconds)

    def close(self) -> None:
        """Kills the child, if any, even while it works (that file fails); a later `extract` starts another."""
        if child := self._child:
            child.interrupt()  # a scan may keep the lock for an hour
        with self._lock:
            if self._idle:
                self._idle.cancel()
                self._idle = None
            self._stop()

    def _ask(self, ask: Callable[[ParserProcess, Request], _Answer], request: Request) -> _Answer:
        if self._child and self._child.exited():
            self._stop()
        if self._child is None:
            self._child, self._served = ParserProcess(self._command), 0
        try:
            self._served += 1
            return ask(self._child, request)
        except ParserFailed as failure:
            self._stop()
            raise failure.error from None
        except IngestionError:
            raise
        except BaseException:
            self._stop()  # it may still be at work on this file
            raise

    def _stop(self) -> None:
        if self._child:
            self._child.kill()
            self._child = None

    def _arm(self, seconds: float) -> None:
        # one timer for many files: a thread for each would cost as much as reading a small one
        self._idle = Timer(seconds, self._close_idle)
        self._idle.daemon = True
        self._idle.start()

    def _close_idle(self) -> None:
        with self._lock:
            self._idle = None
            left = self._used_at + self._idle_seconds - time.monotonic()
            if self._child and left > 0:
                self._arm(left)
            else:
                self._stop()


def find_soffice() -> Path | None:
    """LibreOffice's program, `None` where it is not installed (or not on the `PATH`)."""
    found = shutil.which("soffice") or shutil.which("libreoffice")
    return Path(found) if found else None


class ClosableExtractor(Extractor, Protocol):
    """An extractor that holds something, such as a process."""

    def close(self) -> None:
        """Releases it."""
        ...


class ExtractorPool:
    """A pool of extractors that each take one file at a time."""

    def __init__(self, extractors: Sequence[ClosableExtractor]) -> None:
        assert extractors, "somebody has to read"
        self._all = tuple(extractors)
        # the last used one is used first: under low load one process runs and the others end
        self._free: LifoQueue[ClosableExtractor] = LifoQueue()
        for extractor in self._all:
            self._free.put(extractor)

    def __len__(self) -> int:
        """The number of files extracted in parallel."""
        return len(self._all)

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        """Extracts with a free extractor; waits for one. See `ports.Extractor`.

        Raises:
            IngestionError: The reason, as the subclass and its message.
        """
        extractor = self._free.get()
        try:
            return extractor.extract(path, filename=filename, password=password)
        finally:
            self._free.put(extractor)

    def close(self) -> None:
        """Close all of them."""
        for extractor in self._all:
            extractor.close()
