"""Bodies of what a document says: its text, pages and chunks."""

from pydantic import Field

from app.api.schemas.shape import ResponseBody


class ContentBody(ResponseBody):
    """A slice of a document's canonical text."""

    document_id: str = Field(description="The document.")
    version: int = Field(description="The version the text belongs to.")
    start: int = Field(description="First character, inclusive.", examples=[0])
    end: int = Field(description="Last character, exclusive.", examples=[120])
    total: int = Field(description="Characters of the whole text.", examples=[20123])
    text: str = Field(description="The text; offsets count Unicode code points.")


class PageBody(ResponseBody):
    """One page's text and where it lies in the canonical text."""

    document_id: str = Field(description="The document.")
    version: int = Field(description="The version.")
    number: int = Field(description="The page, slide or sheet, from 1.", examples=[4])
    start_char: int = Field(description="First character of the page.")
    end_char: int = Field(description="One past its last character.")
    text: str = Field(description="Its text.")


class ChunkBody(ResponseBody):
    """A chunk of a document."""

    id: str = Field(description="The chunk's id.", examples=["chk_12"])
    ordinal: int = Field(description="Its place in the document, from 0.", examples=[0])
    version: int = Field(description="The version it belongs to.")
    start_char: int = Field(description="First character in the canonical text.")
    end_char: int = Field(description="One past its last character.")
    page_start: int | None = Field(description="First page it touches.")
    page_end: int | None = Field(description="Last page it touches.")
    heading_path: list[str] = Field(description="The headings above it, outermost first.")
    token_count: int = Field(description="Embedder tokens, heading path included.")
    text: str = Field(description="Exactly `content[start_char:end_char]`.")
