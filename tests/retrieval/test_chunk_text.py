"""retrieval.types.Chunk: the text of a span, by the document's offsets."""

from hypothesis import given
from hypothesis import strategies as st

from retrieval.types import Span
from tests.retrieval.fakes import chunk

DOCUMENT = "".join(chr(0x4E00 + at) for at in range(60))


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_the_text_of_a_span_is_the_documents_as_far_as_the_chunk_has_it(
    start: int, end: int, first: int, last: int
) -> None:
    start, end = sorted((start, end))
    first, last = sorted((first, last))
    found = chunk(1, DOCUMENT[start:end], start_char=start)

    assert found.text_at(Span(first, last)) == DOCUMENT[max(first, start) : max(min(last, end), start)]
