"""Every target of the grammars, and how many cases of each are tried at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from ingestion.child_extractor import ChildExtractor
from ingestion.extraction import LocalExtractor
from tests.fuzz.grammars.chunks import ChunkTarget
from tests.fuzz.grammars.completions import CompletionTarget
from tests.fuzz.grammars.events import EventTarget
from tests.fuzz.grammars.filters import FilterTarget
from tests.fuzz.grammars.multipart import MultipartTarget
from tests.fuzz.grammars.polyglots import PolyglotTarget
from tests.fuzz.grammars.readers import LIMITS, ReaderTarget
from tests.fuzz.grammars.texts import TextTarget
from tests.fuzz.target import Target

CASES = {
    "filters": 200,
    "multipart": 250,
    "events": 300,
    "completions": 60,
    "readers": 40,
    "text-readers": 250,
    "chunks": 150,
    "polyglots": 350,
    "texts": 400,
}
"""The cases of a short run by the name of the target; a long run tries them many times over."""


@contextmanager
def every_target(url: str) -> Iterator[dict[str, Target]]:
    """The targets by name, two of which send requests to the application at `url`."""
    with ChildExtractor(LIMITS, idle_seconds=600) as extractor:
        filters = FilterTarget(url)
        targets: list[Target] = [
            filters,
            MultipartTarget(url),
            EventTarget(),
            CompletionTarget(),
            ReaderTarget(extractor, textual=False),
            ReaderTarget(LocalExtractor(LIMITS), textual=True),
            ChunkTarget(),
            PolyglotTarget(),
            TextTarget(),
        ]
        try:
            yield {target.name: target for target in targets}
        finally:
            filters.close()
