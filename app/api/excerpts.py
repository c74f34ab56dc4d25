"""The beginning of a source's passage in one line, so that a reader can tell it from the others before it is read."""

from app.answering.formats.plain_text import PlainText
from ingestion.formats import FORMATS
from ingestion.types import MediaType
from retrieval.types import Chunk, Source, Span
from retrieval.words import word_spans

MOST_CHARS = 200
"""The longest excerpt, its ellipsis included."""

_ELLIPSIS = "…"
_PIECE = MOST_CHARS  # characters of Markdown converted at a time: a source may be as long as the context
_ENOUGH = 2 * MOST_CHARS
_MARKED_UP = tuple(f".{extension}" for extension in FORMATS[MediaType.MARKDOWN].extensions)


def passage_of(source: Source) -> Span:
    """The characters of the document from the first that is presented to the last, within the source's chunk."""
    chunk = source.hit.chunk  # a summary may be of text beyond it
    return Span(
        max(chunk.start_char, source.spans[0].start_char),
        min(chunk.end_char, source.spans[-1].end_char),
    )


def excerpt_of(source: Source) -> str:
    """The passage's own words in one line, at most `MOST_CHARS` characters; a longer passage is cut behind a word.

    White space is one space, and the headings above the passage's own text are left out. Markdown is the only format
    whose canonical text has marks; there they are removed.
    """
    chunk, passage = source.hit.chunk, passage_of(source)
    text = chunk.text_at(passage)
    if chunk.filename.casefold().endswith(_MARKED_UP):
        text = _without_marks(text)
    return _cut(" ".join(_below_headings(text, chunk).split()))


def _without_marks(text: str) -> str:
    """The plain text of Markdown, or a beginning that is longer than an excerpt and its heading."""
    writer, shown = PlainText(), ""
    for at in range(0, len(text), _PIECE):
        shown += writer.feed(text[at : at + _PIECE])
        if len(" ".join(shown.split())) > _ENOUGH:
            return shown
    return shown + writer.finish()


def _below_headings(text: str, chunk: Chunk) -> str:
    """`text` without the first lines that are headings of its section, where other text follows."""
    headings = {" ".join(heading.split()).casefold() for heading in chunk.heading_path}
    first, _, rest = text.lstrip().partition("\n")
    while rest.strip() and " ".join(first.split()).casefold() in headings:
        text = rest
        first, _, rest = text.lstrip().partition("\n")
    return text


def _cut(line: str) -> str:
    """`line`, or its beginning up to the end of a word and an ellipsis; a word that is too long is cut itself."""
    if len(line) <= MOST_CHARS:
        return line
    room = MOST_CHARS - len(_ELLIPSIS)
    ends = [end for _, end in word_spans(line[: room + 1]) if end <= room]
    if not ends:
        return line[:room] + _ELLIPSIS
    return line[: ends[-1]] + _ELLIPSIS
