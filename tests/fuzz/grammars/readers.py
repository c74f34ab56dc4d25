"""Damaged files read as a server reads them: text that keeps its promises comes of each, or a named reason."""

import base64
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path

from hypothesis import strategies as st

from ingestion.errors import IngestionError, LimitExceeded, ParserCrashed
from ingestion.normalise import normalise
from ingestion.ports import Extractor
from ingestion.types import Extraction, ExtractionLimits
from tests.fuzz.grammars.chunks import check_passages
from tests.fuzz.grammars.damaged_files import TEXTUAL, damaged_files, small_files
from tests.fuzz.target import Case

LIMITS = ExtractionLimits(seconds=60, text_chars=5_000_000, pages=2_000, expanded_bytes=64 << 20)
_LONGEST_S = 30
"""Processor seconds in this process; damaged files of some KiB take milliseconds."""


def packed(name: str, data: bytes) -> Case:
    """The case of a file."""
    return {"name": name, "data": base64.b64encode(zlib.compress(data)).decode()}


def unpacked(case: Case) -> bytes:
    """The bytes of the file of a case."""
    return zlib.decompress(base64.b64decode(case["data"]))


class ReaderTarget:
    """Damaged files of a kind, read by an extractor."""

    def __init__(self, extractor: Extractor, *, textual: bool) -> None:
        """`textual` chooses the formats whose readers need no large library, otherwise all the others."""
        self.name = "text-readers" if textual else "readers"
        self.answers: Counter[tuple[str, int]] = Counter()
        names = TEXTUAL if textual else frozenset(small_files()) - TEXTUAL
        self.cases: st.SearchStrategy[Case] = damaged_files(names=names).map(lambda file: packed(*file))
        self._extractor = extractor

    def check(self, case: Case) -> None:
        """Read the file."""
        started = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "upload"
            path.write_bytes(unpacked(case))
            try:
                extraction = self._extractor.extract(path, filename=case["name"])
            except IngestionError as error:
                _check_reason(error)
            else:
                check_extraction(extraction)
                check_passages(extraction)
        assert time.process_time() - started < _LONGEST_S, "it took too long"


def _check_reason(error: IngestionError) -> None:
    sentence = str(error)
    assert not isinstance(error, ParserCrashed), "the parser died"
    assert not (isinstance(error, LimitExceeded) and ("second" in sentence or "memory" in sentence)), sentence
    assert sentence.endswith("."), f"no sentence: {sentence}"
    assert "/" not in sentence, f"a path: {sentence}"


def check_extraction(extraction: Extraction) -> None:
    """Require what an extraction promises: storable text, and blocks and pages that lie in it, in order."""
    text = extraction.text
    assert text.strip(), "there is no text"
    assert normalise(text) == text, "the text is not normalised"
    text.encode()
    end = 0
    for block in extraction.blocks:
        assert end <= block.start_char < block.end_char <= len(text), f"{block} after {end}"
        assert text[block.start_char : block.end_char].strip(), f"{block} is blank"
        end = block.end_char
        for heading in block.heading_path:
            assert normalise(heading) == heading, f"a heading is not normalised: {heading!r}"
    end = 0
    for page in extraction.pages:
        assert end <= page.start_char <= page.end_char <= len(text), f"{page} after {end}"
        end = page.end_char
    if extraction.title is not None:
        assert normalise(extraction.title) == extraction.title, f"the title is not normalised: {extraction.title!r}"
        assert extraction.title.strip(), "the title is blank"
