"""The parser process: reads requests on standard input, answers on standard output.

`python -m ingestion.child FOLDER [SOFFICE]`: FOLDER has the document at hand, SOFFICE is LibreOffice's program, if
there is one.

It expects hostile files and may be killed. It enters a sandbox, lowers its own limits and priority, communicates
with its parent only, and returns only text or an error sentence.
"""

import os
import resource
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ingestion.errors import IngestionError, LimitExceeded
from ingestion.extraction import LocalExtractor, load_reader
from ingestion.messages import (
    Loaded,
    Located,
    Reply,
    Request,
    Scanning,
    framed,
    pack_reply,
    read_message,
    unpack_request,
)
from ingestion.ports import Extractor
from ingestion.sandbox import enter_sandbox
from ingestion.sniff import sniff
from ingestion.types import Extraction, ExtractionLimits
from retrieval import words as _words  # noqa: F401  # later the folder of the packages cannot be listed any more

_FILE_BYTES = 256 << 20  # a decrypted document, an attachment, a document converted by LibreOffice
_OPEN_FILES = 256
_HEADROOM_BYTES = 2 << 30  # private memory that is reserved and not resident: thread stacks, arenas
_CPU_SECONDS_PER_SECOND = 4  # several threads may work at once
_LOADING_SECONDS = 120


def main() -> None:
    """Serve until standard input ends."""
    shown, *office = map(Path, sys.argv[1:])
    soffice = office[0] if office else None
    enter_sandbox(work=Path(os.environ["TMPDIR"]), shown=shown, soffice=soffice)
    serve(
        lambda limits, on_scan: LocalExtractor(limits, soffice=soffice, on_scan=on_scan),
        load=partial(_load, with_office=soffice is not None),
    )


def serve(
    extractor: Callable[[ExtractionLimits, Callable[[int, int], None]], Extractor], *, load: Callable[[Request], None]
) -> None:
    """Answer requests until standard input ends.

    `extractor` is made for each file; it calls its second argument with the number of a scanned page
    and of all when it begins to recognise it. `load` brings the parser for a file into memory, which
    may take seconds, before its clock starts.
    """
    requests, replies = _take_pipes()
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    with requests, replies:
        while (message := read_message(requests)) is not None:
            request = unpack_request(message)
            _limit(request.limits, seconds=request.limits.seconds)
            reply: Reply
            try:
                load(request)
                _send(replies, Loaded())
                reply = _answer(request, extractor(request.limits, _scan_reporter(replies, request.limits)))
            except IngestionError as error:
                reply = error
            _send(replies, reply)


def _answer(request: Request, extractor: Extractor) -> Extraction | Located:
    if not request.spans:
        return extractor.extract(request.path, filename=request.filename, password=request.password)
    from ingestion.readers.pdf_boxes import read_boxes

    return Located(read_boxes(request.path, request.spans, password=request.password))


def _load(request: Request, *, with_office: bool) -> None:
    media_type = sniff(
        request.path, filename=request.filename, with_password=request.password is not None, with_office=with_office
    )
    load_reader(media_type)


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Reserves the two pipes, so that libraries that print cannot break the protocol."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)
    return requests, replies


def _scan_reporter(replies: BinaryIO, limits: ExtractionLimits) -> Callable[[int, int], None]:
    """Reports the start of a scanned page to the watcher; limits the pages of all attachments of a message together.

    Otherwise the watcher would kill this process, and the rest of the message would be lost.
    """
    told = 0

    def report(page: int, of: int) -> None:
        nonlocal told
        if told >= limits.ocr_pages:
            raise LimitExceeded(f"The files have more than {limits.ocr_pages:,} scanned pages, the most we recognise.")
        told += 1
        _limit(limits, seconds=limits.ocr_page_seconds + limits.seconds)
        _send(replies, Scanning(page, of))

    return report


def _limit(limits: ExtractionLimits, *, seconds: float) -> None:
    """Sets resource limits as a fallback when the parent is gone; the parent's own limits are tighter."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = _LOADING_SECONDS + seconds * _CPU_SECONDS_PER_SECOND
    _lower(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + allowed) + 1)
    _lower(resource.RLIMIT_DATA, limits.memory_bytes + _HEADROOM_BYTES)


def _lower(kind: int, wanted: int) -> None:
    """Sets a soft limit, at most the inherited hard limit."""
    _, most = resource.getrlimit(kind)
    resource.setrlimit(kind, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def _send(replies: BinaryIO, reply: Reply) -> None:
    replies.write(framed(pack_reply(reply)))
    replies.flush()


if __name__ == "__main__":
    main()
