"""Times reading and chunking PDFs beside pdfium's bare text, which is the limit.

Usage: `python -m tests.bench.ingest.parsing FOLDER --tokenizer FILE [--rounds N]`, FOLDER holding PDFs, FILE being
the embedder's `tokenizer.json`. Both sides take turns on every file in one process on one core, and
each keeps its fastest round (CPU seconds), so that a busy machine disturbs both alike.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pypdfium2
from tokenizers import Tokenizer

from ingestion.chunking import Chunker
from ingestion.errors import IngestionError
from ingestion.readers.pdf import read_pdf
from ingestion.types import ExtractionLimits

_LEAST_CHARS = 200  # a page, on average: what has less is no text PDF


@dataclass(frozen=True, slots=True)
class Speed:
    """CPU seconds of one file: pdfium's text alone, our reading, our chunking."""

    file: str
    pages: int
    bare: float
    reading: float
    chunking: float

    @property
    def ratio(self) -> float:
        """Our pages a second as a share of bare pdfium's."""
        return self.bare / (self.reading + self.chunking)


def speeds(files: Sequence[Path], chunker: Chunker, *, rounds: int) -> list[Speed]:
    """The figures of every file that has text; the others are left out."""
    limits = ExtractionLimits(ocr_pages=0)
    found: list[Speed] = []
    for file in files:
        try:
            extraction = read_pdf(file, limits)
        except IngestionError:
            continue
        pages = len(extraction.pages)
        if len(extraction.text) < _LEAST_CHARS * pages:
            continue
        sides = (partial(_bare, file), partial(read_pdf, file, limits), partial(chunker.chunk, extraction))
        taken = [[_seconds(side) for side in sides] for _ in range(rounds)]
        found.append(Speed(file.name, pages, *(min(column) for column in zip(*taken, strict=True))))
    return found


def _bare(file: Path) -> None:
    with closing(pypdfium2.PdfDocument(file)) as document:
        for number in range(len(document)):
            with closing(document[number]) as page, closing(page.get_textpage()) as textpage:
                textpage.get_text_range()


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line a file and the total."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    os.environ |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    chunker = Chunker(Tokenizer.from_file(str(given.tokenizer)), max_tokens=256, overlap=32)
    found = speeds(sorted(given.folder.rglob("*.pdf")), chunker, rounds=given.rounds)
    print(f"{'file':44} pages  bare  read  chunk  ms a page  ratio")
    for speed in found:
        a_page = [1000 * value / speed.pages for value in (speed.bare, speed.reading, speed.chunking)]
        times = " ".join(f"{value:5.1f}" for value in a_page)
        print(f"{speed.file[:44]:44} {speed.pages:5} {times} {speed.ratio:15.2f}")
    pages, bare = sum(speed.pages for speed in found), sum(speed.bare for speed in found)
    ours = sum(speed.reading + speed.chunking for speed in found)
    print(f"{pages} pages: pdfium alone {pages / bare:.0f} pages/s, ours {pages / ours:.0f}, ratio {bare / ours:.2f}")


if __name__ == "__main__":
    main()
