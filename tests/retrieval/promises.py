"""Everything `compress` promises of any context, and hits to try it with."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from hypothesis import strategies as st

from retrieval.compress import ELLIPSIS
from retrieval.footnote_numbers import header_of
from retrieval.types import Context, Hit
from tests.retrieval.fakes import chunk, hit

Counter: TypeAlias = Callable[[str], int]


def reasons(context: Context) -> dict[str, str]:
    return {dropped.chunk_id: dropped.reason for dropped in context.dropped}


def check(context: Context, hits: Sequence[Hit], *, budget: int, count: Counter) -> None:
    """The budget holds, offsets slice to the kept text, numbers lead back to chunks, no hit is forgotten."""
    assert context.tokens == sum(count(source.header) + count(source.body) for source in context.sources) <= budget
    assert context.retrieved_tokens == sum(
        count(header_of(1, one.chunk)) + count(one.chunk.text + "\n") for one in hits
    )
    assert [source.number for source in context.sources] == list(range(1, len(context.sources) + 1))
    by_id = {one.chunk.id: one.chunk for one in hits}
    held: dict[tuple[str, int], set[int]] = {}
    merged: list[str] = []
    for source in context.sources:
        reach = source.hit.chunk
        assert source.tokens == count(source.header) + count(source.body)
        assert source.header == header_of(source.number, reach)
        assert reach.text[: reach.end_char - reach.start_char] == reach.text
        assert {one.id for one in source.chunks} >= {reach.id}
        pieces = []
        for span in source.spans:
            assert reach.start_char <= span.start_char < span.end_char <= reach.end_char
            piece = reach.text[span.start_char - reach.start_char : span.end_char - reach.start_char]
            assert piece == piece.strip()
            pieces.append(piece)
            found = source.chunk_at(span)
            assert found is by_id[found.id]
            assert found.start_char < span.end_char
            assert span.start_char < found.end_char
        for found in source.chunks:
            assert by_id[found.id] is found
            assert found.text == reach.text[found.start_char - reach.start_char : found.end_char - reach.start_char]
        assert source.body == ELLIPSIS.join(pieces) + "\n"
        assert source.compressed is (source.body != reach.text.strip() + "\n")
        ends = [(span.start_char, span.end_char) for span in source.spans]
        assert ends == sorted(ends)
        characters = [i for start, end in ends for i in range(start, end)]
        seen = held.setdefault((reach.document_id, reach.version), set())
        assert len(characters) == len(set(characters))
        assert not seen & set(characters)
        seen.update(characters)
        merged += [found.id for found in source.chunks if found.id != reach.id]
    assert sorted(merged) == sorted(chunk_id for chunk_id, reason in reasons(context).items() if reason == "merged")
    accounted = [source.hit.chunk.id for source in context.sources] + [dropped.chunk_id for dropped in context.dropped]
    assert sorted(accounted) == sorted(one.chunk.id for one in hits)


def check_slices(context: Context, contents: Mapping[str, str]) -> None:
    """What a source shows is what stands at its offsets in the document, by the document's own text."""
    for source in context.sources:
        content = contents[source.hit.chunk.document_id]
        shown = ELLIPSIS.join(content[span.start_char : span.end_char] for span in source.spans)
        assert source.body == f"{shown}\n"


@st.composite
def found_in(draw: st.DrawFn, prose: st.SearchStrategy[str], *, most: int = 6) -> tuple[list[Hit], dict[str, str]]:
    """Hits best first, and the text of every document by its id.

    One document is cut into chunks that overlap, touch, repeat or hold each other anyhow, beside chunks
    of documents of their own.
    """
    contents = {"shared": draw(prose)}
    hits = []
    for key in range(draw(st.integers(0, most))):
        if draw(st.booleans()):
            start, document_id = draw(st.integers(0, 5)), f"doc_{key}"
            contents[document_id] = " " * start + draw(prose)
            text = contents[document_id][start:]
        else:
            document_id, content = "shared", contents["shared"]
            start, end = sorted((draw(st.integers(0, len(content))), draw(st.integers(0, len(content)))))
            text = content[start:end]
        hits.append(hit(chunk(key, text, start_char=start, document_id=document_id), rank=key + 1))
    return hits, contents
