"""The content of a message in Anthropic's protocol: texts, and documents that are sent with them."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator

from app.api.schemas.bounds import MOST_FIELDS, MOST_QUESTION, MOST_SENT, MOST_TEXT
from app.api.schemas.shape import RequestBody
from app.api.schemas.unsupported import unsupported

Text = Annotated[str, StringConstraints(max_length=MOST_TEXT)]
_Sent = Annotated[str, StringConstraints(max_length=MOST_SENT)]
_Unused = Annotated[dict[str, Any], Field(max_length=MOST_FIELDS)]
_Cache = Annotated[
    _Unused | None, Field(description="Accepted; common prefixes of a tenant's prompts are always cached.")
]

_MEDIA_TYPES = {"text": "text/plain", "base64": "application/pdf"}
"""The media type that a source of each kind may have."""


class TextBlock(RequestBody):
    """A text block of a message or of the instructions; an answer's block can be sent back."""

    type: Literal["text"] = Field(description="`text`; a message may have documents too.")
    text: Text = Field(description="The text.")
    citations: Annotated[list[_Unused], Field(max_length=1000, fail_fast=True)] | None = Field(
        default=None, description="Accepted, so that an answer can be sent back; not used."
    )
    cache_control: _Cache = None

    @model_validator(mode="before")
    @classmethod
    def _only_text(cls, data: object) -> object:
        if isinstance(data, dict) and data.get("type") != "text":
            kind = str(data.get("type"))[:40]
            raise unsupported("type", f"Content of the type '{kind}' is not supported: only text is.")
        return data


TextBlocks = Annotated[list[TextBlock], Field(max_length=1000, fail_fast=True)]


class DocumentSource(RequestBody):
    """A document's text, its PDF, or its text in blocks."""

    type: Literal["text", "base64", "content"] = Field(
        description="`text` has `data` as plain text, `base64` has a PDF in it, `content` has text blocks."
    )
    media_type: Literal["text/plain", "application/pdf"] | None = Field(
        default=None, description="`text/plain` for `text`, `application/pdf` for `base64`."
    )
    data: _Sent | None = Field(default=None, description="The text, or the PDF in base64.")
    content: _Sent | TextBlocks | None = Field(default=None, description="Text blocks, or one text.")

    @model_validator(mode="before")
    @classmethod
    def _served(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        kind = str(data.get("type"))[:40]
        if kind not in {*_MEDIA_TYPES, "content"}:
            raise unsupported(
                "type", f"A document's source of the type '{kind}' is not supported: only text, base64 and content are."
            )
        media_type = str(data.get("media_type"))[:80]
        if kind in _MEDIA_TYPES and media_type != _MEDIA_TYPES[kind]:
            raise unsupported(
                "media_type",
                f"A document's source of the type '{kind}' with the media type '{media_type}' is not supported: only "
                f"{_MEDIA_TYPES[kind]} is.",
            )
        field, other = ("content", "data") if kind == "content" else ("data", "content")
        if data.get(field) is None or data.get(other) is not None:
            raise ValueError(f"a source of the type {kind} has '{field}', and no '{other}'")
        return data


class Cites(RequestBody):
    """Whether an answer names the places of a document that it rests on."""

    enabled: bool = Field(default=False, description="The same for all documents of a request.")


class DocumentBlock(RequestBody):
    """A document from which the question is answered. It is read for this request, and stored nowhere."""

    type: Literal["document"] = Field(description="Always `document`.")
    source: DocumentSource = Field(description="Its text.")
    title: Annotated[str, StringConstraints(max_length=500)] | None = Field(
        default=None, description="What it is called.", examples=["Annual report"]
    )
    context: Annotated[str, StringConstraints(max_length=MOST_QUESTION)] | None = Field(
        default=None, description="Told to a language model that words the answer; never cited."
    )
    citations: Cites | None = Field(default=None, description="Left out is not enabled.")
    cache_control: _Cache = None

    @property
    def cites(self) -> bool:
        """Whether citations are enabled."""
        return self.citations is not None and self.citations.enabled


def _kind(data: object) -> str:
    kind = data.get("type") if isinstance(data, dict) else getattr(data, "type", None)
    return "document" if kind == "document" else "text"


Block: TypeAlias = Annotated[
    Annotated[TextBlock, Tag("text")] | Annotated[DocumentBlock, Tag("document")], Discriminator(_kind)
]


class MessageParam(RequestBody):
    """A turn of the conversation."""

    role: Literal["user", "assistant"] = Field(description="Role of the author.")
    content: Text | Annotated[list[Block], Field(max_length=1000, fail_fast=True)] = Field(
        description="The text, and documents in messages of the user.", examples=["How did revenue develop?"]
    )

    @model_validator(mode="after")
    def _documents_are_the_users(self) -> "MessageParam":
        if self.role == "assistant" and any(True for _ in self.documents):
            raise ValueError("documents are sent in messages of the user")
        return self

    @property
    def text(self) -> str:
        """The texts as one string."""
        if isinstance(self.content, str):
            return self.content
        return text_of([block for block in self.content if isinstance(block, TextBlock)])

    @property
    def documents(self) -> Iterator[tuple[int, DocumentBlock]]:
        """The documents, each with its place among the blocks."""
        if not isinstance(self.content, str):
            for place, block in enumerate(self.content):
                if isinstance(block, DocumentBlock):
                    yield place, block


def text_of(content: str | list[TextBlock]) -> str:
    """The content as one string."""
    return content if isinstance(content, str) else "".join(block.text for block in content)
