"""The body of the event `sources` in the stream of `POST /v1/ask`: the chunks, and the passages that are read."""

from typing import Self

from pydantic import Field

from app.answering.answers.answer import SourcesFound
from app.api.excerpts import MOST_CHARS, excerpt_of, passage_of
from app.api.schemas.answers import SourcesBody
from app.api.schemas.shape import ResponseBody
from retrieval.footnote_numbers import place_of
from retrieval.types import Source


class SourcePassageBody(ResponseBody):
    """A passage that is read for an answer."""

    chunk_id: str = Field(description="The chunk, as in `presented`.", examples=["chk_12"])
    document_id: str = Field(description="The document.", examples=["doc_01k9"])
    version: int = Field(description="The version that is read.", examples=[1])
    name: str = Field(description="The document's name, as `filename` of a footnote.", examples=["report.pdf"])
    place: str = Field(
        description="Pages and heading in words, as the model reads them; in a spreadsheet the heading is the sheet. "
        "Empty where the document has neither.",
        examples=["pages 3-4 — Revenue"],
    )
    page_start: int | None = Field(
        description="First page of the chunk, from 1; null where the format has none.", examples=[3]
    )
    page_end: int | None = Field(description="Last page of the chunk.", examples=[4])
    start_char: int = Field(description="First character of the passage in the canonical text.", examples=[10233])
    end_char: int = Field(description="One past its last character.", examples=[10870])
    excerpt: str = Field(
        max_length=MOST_CHARS,
        description=f"The beginning of the passage in one line: its own words without Markdown, at most {MOST_CHARS} "
        "characters. A longer passage is cut behind a word, and `…` follows.",
        examples=["Revenue rose 12 percent to 48 million dollars in 2025."],
    )

    @classmethod
    def of(cls, source: Source) -> Self:
        """The body for a presented source."""
        chunk, passage = source.hit.chunk, passage_of(source)
        return cls(
            chunk_id=chunk.id,
            document_id=chunk.document_id,
            version=chunk.version,
            name=chunk.filename,
            place=place_of(chunk),
            page_start=chunk.page_start,
            page_end=chunk.page_end,
            start_char=passage.start_char,
            end_char=passage.end_char,
            excerpt=excerpt_of(source),
        )


class SourcesEventBody(SourcesBody):
    """The sources of an answer as soon as they are known, before anything is cited."""

    passages: list[SourcePassageBody] = Field(description="What `presented` names, in the same order.")

    @classmethod
    def found(cls, event: SourcesFound) -> Self:
        """The body for the event."""
        return cls(
            **SourcesBody.of(event.report).model_dump(),
            passages=[SourcePassageBody.of(source) for source in event.sources],
        )
