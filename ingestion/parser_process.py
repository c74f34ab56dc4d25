"""One parser process: sends requests and receives replies over pipes, with limits on time and memory."""

import contextlib
import errno
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from ingestion.errors import DiskFailed, IngestionError, LimitExceeded, NoRoom, ParserCrashed
from ingestion.messages import (
    HEADER_BYTES,
    Loaded,
    Located,
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
# Environment variables that a process needs to start. Keys and passwords of the server are not passed on.
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


class ParserFailed(Exception):
    """The process is unusable; `error` is the reason for the caller."""

    def __init__(self, error: IngestionError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class _Deadline:
    """The deadline of the next reply in monotonic seconds, and the error for a file that misses it."""

    at: float
    error: LimitExceeded


class ParserProcess:
    """One parser process with its pipes and its temporary folder, which is deleted with it.

    The process sees a document in its own folder: it can be kept from all others (`ingestion.sandbox`).
    """

    def __init__(self, command: list[str]) -> None:
        """`command` is a module and its arguments; the folder with the document is given as a first one."""
        self._folder = Path(tempfile.mkdtemp(prefix="footnote-parser-"))
        work, self._shown = self._folder / "work", self._folder / "shown"
        work.mkdir()
        self._shown.mkdir()
        module, *arguments = command
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            # -P: no module is taken from the working directory
            [sys.executable, "-P", "-m", module, str(self._shown), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # parsers quote the document
            bufsize=0,
            env=inherited | {"HOME": str(work), "TMPDIR": str(work)} | _ENVIRONMENT,
            start_new_session=True,  # its own process group, killed as one
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._replies = self._process.stdin, self._process.stdout
        self._buffer = bytearray()
        self._may_start = bool(arguments)  # LibreOffice
        self._weighed_at = 0.0

    def exited(self) -> bool:
        """Whether the process has exited."""
        return self._process.poll() is not None

    def ask(self, request: Request) -> Extraction:
        """Extracts a file. Raises `ParserFailed` when the child is unusable, else the file's own error."""
        reply = self._answer(request)
        if not isinstance(reply, Extraction):
            raise ParserFailed(_crashed())
        return reply

    def locate(self, request: Request) -> Located:
        """Locates the request's spans; raises the same errors as `ask`."""
        reply = self._answer(request)
        if not isinstance(reply, Located):
            raise ParserFailed(_crashed())
        return reply

    def _answer(self, request: Request) -> Extraction | Located:
        shown = self._shown / "document"
        try:
            _show(request.path, shown)
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise NoRoom("The folder for temporary files has no room for this document.") from None
            raise DiskFailed from None
        try:
            return self._asked(replace(request, path=shown))
        finally:
            shown.unlink(missing_ok=True)

    def _asked(self, request: Request) -> Extraction | Located:
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
                    raise ParserFailed(_too_many_scans(limits))
                reply = self._next_reply(_scan_deadline(reply, limits), limits)
        match reply:
            case Extraction() | Located():
                return reply
            case IngestionError():
                raise reply
            case Loaded() | Scanning():
                raise ParserFailed(_crashed())

    def interrupt(self) -> None:
        """Kill the process from another thread; a running request then fails and reaps it."""
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
            raise ParserFailed(_crashed()) from error

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
                raise ParserFailed(deadline.error)
            if not ready or time.monotonic() > self._weighed_at + _POLL_SECONDS:
                if self._memory_bytes() > limits.memory_bytes:
                    raise ParserFailed(_too_big(limits))
                self._weighed_at = time.monotonic()  # looking for children reads all of /proc: not for each reply
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

    def _death(self, too_slow: LimitExceeded) -> ParserFailed:
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # it closed the pipe and lives on: `kill` follows
            return ParserFailed(_crashed())
        return ParserFailed(too_slow if self._process.returncode == -signal.SIGXCPU else _crashed())


def _show(document: Path, shown: Path) -> None:
    """Put a document where the process sees it: as a second name of the same file, or as a copy on another disk."""
    try:
        os.link(document, shown)
    except OSError:
        shutil.copyfile(document, shown)


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
