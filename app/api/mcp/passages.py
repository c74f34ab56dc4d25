"""Formats passages for assistants: numbered text, and the same as structured data."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from retrieval.footnote_numbers import marker


class CitedPassage(BaseModel):
    """An exact passage of a document."""

    number: int = Field(description="The number in the text's marker, `[1]`.")
    document_id: str = Field(description="The document.")
    version: int = Field(description="The version of it that the offsets refer to.")
    filename: str = Field(description="The document's name.")
    page_start: int | None = Field(description="First page, from 1; null where the format has none.")
    page_end: int | None = Field(description="Last page.")
    start: int = Field(description="First character in the document's canonical text (Unicode code points).")
    end: int = Field(description="One past the last character.")
    text: str = Field(description="Exactly those characters.")
    verified: bool | None = Field(
        description="Whether it was found to support its sentence and the question to be answered; null for what was "
        "found by a search."
    )
    url: str = Field(description="Where the passage can be read; needs the API key.")


class SearchPassages(BaseModel):
    """The result of a search."""

    passages: list[CitedPassage] = Field(description="Best first.")


class Answered(BaseModel):
    """An answer and its footnotes."""

    answered: bool = Field(description="Whether the documents answer the question.")
    reason: str | None = Field(
        description="Why not, when not. `unsure`: the text quotes the nearest passages, which may not answer."
    )
    text: str = Field(description="The answer with its markers.")
    citations: list[CitedPassage] = Field(description="The passages that the markers name.")
    request_id: str = Field(description="Names the request in the ledger.")


class ListedCollection(BaseModel):
    """A collection of documents."""

    id: str = Field(description="Its id.")
    name: str = Field(description="Its name.")
    documents: int = Field(description="Documents in it.")


class Collections(BaseModel):
    """The collections that the key may read."""

    collections: list[ListedCollection] = Field(description="In no particular order.")


class Excerpt(BaseModel):
    """A part of a document's canonical text."""

    document_id: str = Field(description="The document.")
    version: int = Field(description="The version that was read.")
    start: int = Field(description="First character.")
    end: int = Field(description="One past the last character.")
    total: int = Field(description="Characters of the whole text.")
    text: str = Field(description="Exactly those characters.")


def quote(body: dict[str, Any], *, number: int, base: str) -> CitedPassage:
    """Converts an API hit or citation into a passage; `base` is the server's address."""
    where = {"version": body["version"], "start": body["start_char"], "end": body["end_char"]}
    return CitedPassage(
        number=number,
        document_id=body["document_id"],
        version=body["version"],
        filename=body["filename"],
        page_start=body["page_start"],
        page_end=body["page_end"],
        start=body["start_char"],
        end=body["end_char"],
        text=body["cited_text"] if "cited_text" in body else body["text"],
        verified=body.get("verified"),
        url=f"{base.rstrip('/')}/v1/documents/{body['document_id']}/content?{urlencode(where)}",
    )


def cited(citations: Sequence[dict[str, Any]], *, base: str) -> list[CitedPassage]:
    """The passages of an answer's footnotes, each once for its number: a lead and its quote have the same footnote.

    Args:
        citations: Bodies of the API, in the order of their markers.
        base: The server's address.
    """
    found: dict[tuple[Any, ...], CitedPassage] = {}
    for each in citations:
        passage = quote(each, number=each["index"], base=base)
        key = (passage.number, passage.document_id, passage.version, passage.start, passage.end)
        if key not in found or passage.verified:
            found[key] = passage
    return list(found.values())


def listed(quotes: list[CitedPassage]) -> str:
    """Formats passages as text, each with its number."""
    return "\n\n".join(f"{_heading(each)}\n{each.text}" for each in quotes)


def _heading(passage: CitedPassage) -> str:
    page = f", page {passage.page_start}" if passage.page_start is not None else ""
    doubt = " (not verified)" if passage.verified is False else ""
    name = " ".join(passage.filename.split())
    where = f"document {passage.document_id} version {passage.version}, characters {passage.start}-{passage.end}"
    return f"{marker(passage.number)} {name}{page}{doubt} ({where})"
