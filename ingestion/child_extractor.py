"""Reads files in a process that can be killed: a hostile file costs a child, never the server."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Timer
from types import TracebackType
from typing import Self

import psutil

from ingestion.errors import IngestionError, LimitExceeded, ParserCrashed
from ingestion.messages import (
    HEADER_BYTES,
    Loaded,
    Reply,
    Request,
    Scanning,
    body_length,
    framed,
    pack_request,
    unpack_reply,
)
from ingestion.types import Extraction, ExtractionLimits

_POLL_SECONDS = 0.1
_LOADING_SECONDS = 120.0  # to start Python and import a parser, on a machine that is busy
_ROOT = Path(__file__).resolve().parents[1]
# What a process needs to start at all. Keys and passwords of the server stay with the server.
_INHERITED = ("LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
_ENVIRONMENT = {
    "PATH": "",  # parsers must not find converters to run
    "PYTHONPATH": str(_ROOT),
    "PYTHONDONTWRITEBYTECODE": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",  # the GPU is the engine's
}


class ChildExtractor:
    """An `Extractor` in a child process, started when first needed and reused from file to file.

    One file at a time; callers on other threads wait. The child is killed, with all it started, when
    it takes longer or more memory than the limits allow, replaced after `recycle_after` files
    (libraries leak), and closed after `idle_seconds` without one (it holds a few hundred MB).

    Scanned pages have time of their own: the child tells when one begins, which gives it
    `ocr_page_seconds` from then on, the last one `seconds` more for what follows. It is believed
    `ocr_pages` times, so no child lives for ever.
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
        self._child: _Child | None = None
        self._served = 0  # by this child
        self._files = 0  # by all
        self._idle: Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        """As `ports.Extractor` says.

        Raises:
            LimitExceeded: Also when it took too long or too much memory.
            ParserCrashed: The child died on this file; the next one gets a new child.
        """
        with self._lock:
            self._cancel_idle()
            self._files += 1
            try:
                return self._extract(Request(path.absolute(), filename, self._limits, password))
            finally:
                if self._served >= self._recycle_after:
                    self._stop()
                if self._child:
                    self._idle = Timer(self._idle_seconds, self._close_idle, args=[self._files])
                    self._idle.daemon = True
                    self._idle.start()

    def close(self) -> None:
        """End the child, if there is one, even at work (that file fails); a later `extract` starts another."""
        if child := self._child:
            child.interrupt()  # a scan may keep the lock for an hour
        with self._lock:
            self._cancel_idle()
            self._stop()

    def _extract(self, request: Request) -> Extraction:
        if self._child and self._child.exited():
            self._stop()
        if self._child is None:
            self._child, self._served = _Child(self._command), 0
        try:
            self._served += 1
            return self._child.ask(request)
        except _ChildFailedError as failure:
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

    def _cancel_idle(self) -> None:
        if self._idle:
            self._idle.cancel()
            self._idle = None

    def _close_idle(self, files: int) -> None:
        with self._lock:
            if files == self._files:  # else one has come since the timer fired, and set its own
                self._stop()


class _ChildFailedError(Exception):
    """The child cannot go on; `error` says why to the caller."""

    def __init__(self, error: IngestionError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class _Deadline:
    """When the next reply is due, on the monotonic clock in seconds, and what a file deserves that misses it."""

    at: float
    error: LimitExceeded


class _Child:
    """One parser process, the pipes to it and the folder it may write in, which goes when it goes."""

    def __init__(self, command: list[str]) -> None:
        self._folder = tempfile.mkdtemp(prefix="footnote-parser-")
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            # -P: no module is taken from the working directory
            [sys.executable, "-P", "-m", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # parsers quote the document
            bufsize=0,
            env=inherited | {"HOME": self._folder, "TMPDIR": self._folder} | _ENVIRONMENT,
            start_new_session=True,  # its own process group, killed as one
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._replies = self._process.stdin, self._process.stdout
        self._buffer = bytearray()
        self._may_start = len(command) > 1  # LibreOffice; looking for children reads all of /proc

    def exited(self) -> bool:
        return self._process.poll() is not None

    def ask(self, request: Request) -> Extraction:
        """The child's answer; `_ChildFailedError` where the child is of no more use, else what the file deserves."""
        limits = request.limits
        try:
            self._requests.write(framed(pack_request(request)))
        except OSError as error:
            raise self._death(_too_slow(limits)) from error
        reply = self._next_reply(_Deadline(time.monotonic() + _LOADING_SECONDS, _too_slow(limits)), limits)
        if isinstance(reply, Loaded):
            reply = self._next_reply(_Deadline(time.monotonic() + limits.seconds, _too_slow(limits)), limits)
            scans = 0
            while isinstance(reply, Scanning):
                scans += 1
                if scans > limits.ocr_pages:
                    raise _ChildFailedError(_too_many_scans(limits))
                reply = self._next_reply(_scan_deadline(reply, limits), limits)
        match reply:
            case Extraction():
                return reply
            case IngestionError():
                raise reply
            case Loaded() | Scanning():
                raise _ChildFailedError(_crashed())

    def interrupt(self) -> None:
        """End the process from another thread than the one that asks, which finds it dead and collects it."""
        self._process.kill()

    def kill(self) -> None:
        """End the process group and collect the process."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._requests.close()
        self._replies.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _next_reply(self, deadline: _Deadline, limits: ExtractionLimits) -> Reply:
        try:
            length = body_length(self._take(HEADER_BYTES, deadline, limits))
            return unpack_reply(self._take(length, deadline, limits))
        except ValueError as error:
            raise _ChildFailedError(_crashed()) from error

    def _take(self, count: int, deadline: _Deadline, limits: ExtractionLimits) -> bytes:
        """The next `count` bytes from the child, watching the clock and its memory while they come."""
        while len(self._buffer) < count:
            ready, _, _ = select.select([self._replies], [], [], _POLL_SECONDS)
            if ready:
                piece = os.read(self._replies.fileno(), 1 << 20)
                if not piece:
                    raise self._death(deadline.error)
                self._buffer += piece
            if time.monotonic() > deadline.at:
                raise _ChildFailedError(deadline.error)
            if self._memory_bytes() > limits.memory_bytes:
                raise _ChildFailedError(_too_big(limits))
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _memory_bytes(self) -> int:
        """Resident memory of the child and of all it has started."""
        total = 0
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self._process.pid)
            total = int(process.memory_info().rss)
            for other in process.children(recursive=True) if self._may_start else []:
                with contextlib.suppress(psutil.NoSuchProcess):
                    total += int(other.memory_info().rss)
        return total

    def _death(self, too_slow: LimitExceeded) -> _ChildFailedError:
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # it closed the pipe and lives on: `kill` follows
            return _ChildFailedError(_crashed())
        return _ChildFailedError(too_slow if self._process.returncode == -signal.SIGXCPU else _crashed())


def find_soffice() -> Path | None:
    """LibreOffice's program, `None` where it is not installed (or not on the `PATH`)."""
    found = shutil.which("soffice") or shutil.which("libreoffice")
    return Path(found) if found else None


def _scan_deadline(scanning: Scanning, limits: ExtractionLimits) -> _Deadline:
    is_last = scanning.page == scanning.of
    seconds = limits.ocr_page_seconds + limits.seconds * is_last
    what = f"scanned page {scanning.page:,} of {scanning.of:,}{' and what follows it' if is_last else ''}"
    error = LimitExceeded(f"Reading {what} took longer than {seconds:g} seconds, the most we allow.")
    return _Deadline(time.monotonic() + seconds, error)


def _too_many_scans(limits: ExtractionLimits) -> LimitExceeded:
    return LimitExceeded(f"The document has more than {limits.ocr_pages:,} scanned pages, the most we recognise.")


def _too_slow(limits: ExtractionLimits) -> LimitExceeded:
    return LimitExceeded(f"Reading the document took longer than {limits.seconds:g} seconds, the most we allow.")


def _too_big(limits: ExtractionLimits) -> LimitExceeded:
    return LimitExceeded(
        f"Reading the document took more than {limits.memory_bytes >> 20:,} MiB of memory, the most we allow."
    )


def _crashed() -> ParserCrashed:
    return ParserCrashed("The parser broke down on this document; it may be damaged.")
