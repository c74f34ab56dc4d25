"""A parser process that misbehaves as the file's first word says; run as `python -m tests.ingestion.hostile_child`."""

import ctypes
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ingestion.child import serve
from ingestion.extraction import LocalExtractor
from ingestion.messages import Scanning, framed, pack_reply
from ingestion.types import Extraction, ExtractionLimits

_PIPE = os.dup(1)  # to the watcher, past what `serve` would say


class HostileExtractor:
    """Reads text as the real one does, unless the file tells it to do something else first."""

    def __init__(self, limits: ExtractionLimits, on_scan: Callable[[int, int], None]) -> None:
        self._limits = limits
        self._on_scan = on_scan

    def extract(self, path: Path, *, filename: str, password: str | None = None) -> Extraction:
        """As `ports.Extractor` says, or worse."""
        order, *numbers = path.read_text().split()
        noted = Path(filename)  # next to it a test finds what is written down
        match order:
            case "sleep":
                time.sleep(60)
            case "spin":
                while True:
                    pass
            case "allocate":
                hoard = [bytearray(1 << 20) for _ in range(400)]
                for block in hoard:
                    block[::4096] = b"x" * 256  # touched, so that it is resident
                time.sleep(60)
            case "crash":
                ctypes.string_at(0)
            case "exit":
                os._exit(3)
            case "raise":
                raise RuntimeError("a bug with a /secret/path")
            case "babble":
                print("noise on standard output", flush=True)
                os.write(1, b"\0\0\0\x02{}")
                os.write(2, b"more noise")
                print("noise on standard error", file=sys.stderr, flush=True)
            case "environment":
                noted.with_suffix(".environment").write_text("\n".join(sorted(os.environ)))
            case "command":
                written = [*sys.orig_argv, password or "", os.environ["TMPDIR"]]
                noted.with_suffix(".command").write_text("\n".join(written))
            case "scan":
                pages, seconds = numbers
                for page in range(1, int(pages) + 1):
                    self._on_scan(page, int(pages))
                    time.sleep(float(seconds))
            case "stall":
                self._on_scan(1, 3)
                time.sleep(60)
            case "flood":
                while True:
                    os.write(_PIPE, framed(pack_reply(Scanning(1, 1))))
            case "backstop":
                before, _ = resource.getrlimit(resource.RLIMIT_CPU)
                self._on_scan(1, 1)
                after, _ = resource.getrlimit(resource.RLIMIT_CPU)
                noted.with_suffix(".backstop").write_text(f"{before} {after}")
            case "linger":
                noted.with_suffix(".pid").write_text(str(os.getpid()))
                time.sleep(60)
            case "pid":
                noted.with_suffix(".pid").write_text(str(os.getpid()))
        return LocalExtractor(self._limits).extract(path, filename=filename, password=password)


if __name__ == "__main__":
    serve(HostileExtractor, load=lambda request: None)
