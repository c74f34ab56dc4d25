"""A prompt as a concatenation of token-id segments, each tagged with its component.

The counts on the bill add up by construction. No text of a document or a user can become a special token
(docs/adr/0007).
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain

from app.types import Components, DocumentShare
from retrieval.types import Context

# Every word of a document is between fences and cannot contain one, so that instructions in it are quoted text.
FENCE = '"""'
_GAPS = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
_TRAILING = re.compile(r"(?<![ \t])[ \t]++(?=\n)")
_BLANK_LINES = re.compile(r"\n{3,}")
_WIDE = ("  ", "\t", " \n", "\n\n\n")  # one of these is in each text that the three patterns change


class Component(StrEnum):
    """The purposes of a segment's tokens, as usage reports them."""

    TEMPLATE = "template"
    SYSTEM = "system"
    HISTORY = "history"
    QUESTION = "question"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Segment:
    """Token ids with one purpose; context segments name their document, `body` is a source's own text.

    `opens_sources` marks the segment before the sources.
    """

    component: Component
    ids: tuple[int, ...]
    document_id: str | None = None
    body: bool = field(default=False, kw_only=True)
    opens_sources: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Segments in order; the engine reads their concatenation.

    >>> prompt = build_prompt(tokenizer, question="How did revenue develop?", context=context)
    >>> prompt.components.total == len(prompt.ids)
    True
    """

    segments: tuple[Segment, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """All token ids."""
        return tuple(chain.from_iterable(segment.ids for segment in self.segments))

    @property
    def components(self) -> Components:
        """Tokens by component; the total is `len(ids)`."""
        totals = dict.fromkeys(Component, 0)
        for segment in self.segments:
            totals[segment.component] += len(segment.ids)
        return Components(**{component.value: count for component, count in totals.items()})

    @property
    def sources(self) -> tuple[tuple[int, int], ...]:
        """(start, stop) in `ids` of each source's own text, without its header."""
        spans, at = [], 0
        for segment in self.segments:
            start, at = at, at + len(segment.ids)
            if segment.body:
                spans.append((start, at))
        return tuple(spans)

    @property
    def head(self) -> tuple[int, ...]:
        """Token ids before the first source of a grounded prompt, or before its place where there is none."""
        ids: list[int] = []
        for segment in self.segments:
            ids += segment.ids
            if segment.opens_sources:
                return tuple(ids)
        raise AssertionError("only a grounded prompt has a place for sources")

    def shares(self, context: Context) -> tuple[DocumentShare, ...]:
        """Context tokens and sources by document; the token sum is `components.context`."""
        tokens: dict[str, int] = {}
        for segment in self.segments:
            if segment.document_id is not None:
                tokens[segment.document_id] = tokens.get(segment.document_id, 0) + len(segment.ids)
        chunks: dict[str, int] = {}
        for source in context.sources:
            chunks[source.hit.chunk.document_id] = chunks.get(source.hit.chunk.document_id, 0) + 1
        return tuple(DocumentShare(document, chunks[document], count) for document, count in tokens.items())


def quoted(text: str) -> str:
    """The text of a document to put between fences: without fences, and without superfluous white space.

    Indentation stays, since it matters in code.
    """
    if any(space in text for space in _WIDE):
        text = _BLANK_LINES.sub("\n\n", _GAPS.sub(" ", _TRAILING.sub("", text)))
    return text.replace(FENCE, "'''")
