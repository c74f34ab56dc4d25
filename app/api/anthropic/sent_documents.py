"""Documents that are sent in messages of Anthropic's protocol: what is read of them, and where an answer cites them.

Those of all messages count, the earlier ones too: clients send the whole conversation again with each turn.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from app.answering.citing.citation import Citation
from app.api.anthropic.content import DocumentBlock, MessageParam
from app.api.anthropic.schemas import BlockLocation, CharLocation, Location, PageLocation
from app.documents.inline_library import InlineLibrary, SentDocument, SentPlace
from app.errors import InvalidRequest, UnsupportedParameter
from retrieval.types import Span


@dataclass(frozen=True, slots=True)
class SentDocuments:
    """The documents of a request.

    Attributes:
        documents: In the order of the messages, and of the blocks in each.
        cites: Whether citations are enabled.
        context: What was said about them, a line each; for a language model, and never cited.
    """

    documents: tuple[SentDocument, ...]
    cites: bool
    context: str

    @classmethod
    def of(cls, messages: Sequence[MessageParam]) -> "SentDocuments | None":
        """Those of the messages; None where there are none.

        Raises:
            UnsupportedParameter: Citations are enabled on some of them and not on others.
            InvalidRequest: One is not base64.
        """
        sent = [
            (f"messages.{turn}.content.{place}", block)
            for turn, message in enumerate(messages)
            for place, block in message.documents
        ]
        if not sent:
            return None
        first = sent[0][1].cites
        for field, block in sent:
            if block.cites is not first:
                raise UnsupportedParameter(
                    "Citations are enabled on all documents of a request or on none; here they differ.",
                    param=f"{field}.citations",
                )
        contexts = [f"{block.title or 'Document'}: {block.context}" for _, block in sent if block.context]
        return cls(tuple(_document(block, field) for field, block in sent), first, "\n".join(contexts))


def _document(block: DocumentBlock, field: str) -> SentDocument:
    source = block.source
    content: str | tuple[str, ...] | bytes
    if source.content is not None:
        content = (source.content,) if isinstance(source.content, str) else tuple(one.text for one in source.content)
    else:
        assert source.data is not None, "the source was validated"
        content = _decoded(source.data, field) if source.type == "base64" else source.data
    title = block.title if block.title and block.title.strip() else None
    return SentDocument(content, title=title, field=f"{field}.source")


def _decoded(data: str, field: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest("The PDF is not base64 (RFC 4648, section 4).", param=f"{field}.source.data") from error


class SentNumbers:
    """Names the places of an answer's passages in the documents that were sent, by their number in the request."""

    sources: Literal["sent"] = "sent"

    def __init__(self, library: InlineLibrary, *, cites: bool) -> None:
        """`library` has the documents; without `cites` no place is named."""
        self._library = library
        self._cites = cites

    def add(self, document_ids: Iterable[str]) -> None:
        """Leave the numbers as they are: documents were numbered when they were sent."""

    def locations(self, citation: Citation) -> list[Location]:
        """Where a citation's passage is: its characters, its pages or its blocks."""
        if not self._cites:
            return []
        place = self._place(citation)
        passage: dict[str, Any] = {
            "cited_text": place.text,
            "document_index": place.document,
            "document_title": place.title,
            "file_id": None,
        }
        if place.chars is not None:
            return [
                CharLocation(**passage, start_char_index=place.chars.start_char, end_char_index=place.chars.end_char)
            ]
        if place.pages is not None:
            first, end = place.pages.start_char, place.pages.end_char
            return [PageLocation(**passage, start_page_number=first, end_page_number=end)]
        assert place.blocks is not None, "a place is of one of the three kinds"
        first, end = place.blocks.start_char, place.blocks.end_char
        return [BlockLocation(**passage, start_block_index=first, end_block_index=end)]

    def shown(self, citation: Citation) -> Citation:
        """The footnote with the characters of a text as it was sent, where they differ from what was read of it."""
        place = self._place(citation)
        if place.chars is None:
            return citation
        start, end = place.chars.start_char, place.chars.end_char
        return replace(citation, start_char=start, end_char=end, cited_text=place.text)

    def _place(self, citation: Citation) -> SentPlace:
        pages = None
        if citation.page_start is not None and citation.page_end is not None:
            pages = citation.page_start, citation.page_end
        return self._library.place(citation.document_id, Span(citation.start_char, citation.end_char), pages=pages)
