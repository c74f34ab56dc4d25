"""Lists the units of the sources that could be quoted, and the passages that the reader and a judge read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.answering.quoting.headings import headings_of, is_heading_alone
from app.answering.quoting.references import refers_only
from retrieval.judge_layout import JudgedText
from retrieval.types import Chunk, Source, Span
from retrieval.units import units_of
from retrieval.words import UNSPACED

_WORD = re.compile(rf"[^\W\d_]{{2}}|\d|[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit of a source that could be quoted (`retrieval.units`). Spans are characters of the document version.

    Attributes:
        source: The source.
        span: The characters that are quoted.
        text: Exactly those characters.
        core: The sentence by which the unit is scored.
        core_text: Exactly the characters of `core`.
        pieces: Where one answer may lie: cells, values, sentences.
        heading: Whether it is like a heading without the text below it.
    """

    source: Source
    span: Span
    text: str
    core: Span
    core_text: str
    pieces: tuple[Span, ...]
    heading: bool = False


def candidates_of(sources: Sequence[Source]) -> tuple[Candidate, ...]:
    """The candidates of the sources, in reading order, without what cannot answer.

    Left out are headings without the text below them, what is shorter than a word (no two letters, no number), entries
    of lists of references and bare citations.
    """
    found = []
    known: dict[str, frozenset[str]] = {}
    for source in sources:
        chunk = source.hit.chunk
        known[chunk.document_id] = known.get(chunk.document_id, frozenset()) | headings_of([chunk])
    for source in sources:
        chunk = source.hit.chunk
        for kept in source.spans:
            shown = chunk.text_at(kept)
            units = units_of(shown)
            for at, unit in enumerate(units):
                text = shown[unit.span.start_char : unit.span.end_char]
                if _WORD.search(text) is None or refers_only(shown, unit.core):
                    continue
                if is_heading_alone(shown, units, at, known[chunk.document_id]):
                    continue
                found.append(
                    Candidate(
                        source=source,
                        span=moved(unit.span, kept.start_char),
                        text=text,
                        core=moved(unit.core, kept.start_char),
                        core_text=shown[unit.core.start_char : unit.core.end_char],
                        pieces=tuple(moved(piece, kept.start_char) for piece in unit.pieces),
                        heading=unit.heading,
                    )
                )
    return tuple(found)


def moved(span: Span, by: int) -> Span:
    """The span `by` characters further on."""
    return Span(span.start_char + by, span.end_char + by)


def passage_text(candidate: Candidate) -> str:
    """The text around a candidate: its chunk's, below its document's title and its headings."""
    chunk = candidate.source.chunk_at(candidate.core)
    return "\n".join([*above(chunk), *chunk.heading_path, chunk.text])


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """The text of one chunk as the span reader reads it, and the candidates that lie in it.

    Chunks that touch are one source, but are read apart: in one long text a right answer in one of them is often lost
    among likelier-looking words of the other.

    Attributes:
        text: The document's title, the innermost heading and the header of the table that the chunk begins in, which
            may name the subject, and the presented text.
        candidates: Places in the sequence of candidates.
        pieces: For each piece of these candidates its characters in `text`.
        owners: For each piece the place of its candidate.
        starts: For each piece the first character in the document.
    """

    text: str
    candidates: tuple[int, ...]
    pieces: tuple[Span, ...]
    owners: tuple[int, ...]
    starts: tuple[int, ...]


def passages_of(candidates: Sequence[Candidate]) -> list[ReadPassage]:
    """The passages that hold the candidates, one for each chunk with any, in reading order."""
    grouped: dict[tuple[int, int], list[int]] = {}
    for place, candidate in enumerate(candidates):
        chunk = _read_in(candidate)
        grouped.setdefault((candidate.source.number, chunk.key), []).append(place)
    return [_passage(candidates, places) for places in grouped.values()]


def _read_in(candidate: Candidate) -> Chunk:
    """The chunk that holds most of a candidate's pieces, the first of equals: its heading may stand in another one."""
    pieces = candidate.pieces or (candidate.core,)

    def held(chunk: Chunk) -> int:
        return sum(
            max(0, min(piece.end_char, chunk.end_char) - max(piece.start_char, chunk.start_char)) for piece in pieces
        )

    return max(candidate.source.chunks, key=held, default=candidate.source.hit.chunk)


def _passage(candidates: Sequence[Candidate], places: Sequence[int]) -> ReadPassage:
    source = candidates[places[0]].source
    chunk, whole = _read_in(candidates[places[0]]), source.hit.chunk
    text = "".join(f"{line}\n" for line in above(chunk))
    kept: list[tuple[int, int, int]] = []
    for span in source.spans:
        start, end = max(span.start_char, chunk.start_char), min(span.end_char, chunk.end_char)
        if start < end:
            kept.append((len(text), start, end))
            text += whole.text[start - whole.start_char : end - whole.start_char] + "\n"
    pieces, owners, starts = [], [], []
    for place in places:
        for piece in candidates[place].pieces:
            for at, start, end in kept:
                first, last = max(piece.start_char, start), min(piece.end_char, end)
                if first < last:
                    pieces.append(Span(at + first - start, at + last - start))
                    owners.append(place)
                    starts.append(first)
    return ReadPassage(text.rstrip(), tuple(places), tuple(pieces), tuple(owners), tuple(starts))


def above(chunk: Chunk) -> list[str]:
    """The lines that a model reads above a chunk's text: title, innermost heading, header of the table it begins in."""
    heading = chunk.heading_path[-1] if chunk.heading_path else ""
    return list(dict.fromkeys(line for line in (chunk.title, heading, chunk.table_header) if line))


def judged_texts(candidates: Sequence[Candidate]) -> list[JudgedText]:
    """The candidates as the judge reads them, in their order."""
    return [
        JudgedText(" — ".join(above(one.source.chunk_at(one.core))), _sentence_before(one), one.text)
        for one in candidates
    ]


def _sentence_before(candidate: Candidate) -> str:
    """The last sentence of the source that ends before a candidate; empty where it is the first."""
    chunk = candidate.source.hit.chunk
    start = candidate.span.start_char - chunk.start_char
    cores = [unit.core for unit in units_of(chunk.text) if unit.core.end_char <= start]
    return chunk.text[cores[-1].start_char : cores[-1].end_char] if cores else ""
