"""The prompt as a concatenation of token-id segments.

Each piece is tokenised apart and tagged with what it is for, so the counts on the bill add up by
construction, and no text of a document or a person can become a special token (docs/adr/0007).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.types import Components, DocumentShare
from generation.ports import Tokenizer
from retrieval.types import Context

SYSTEM = (
    "Answer the question using only the numbered sources. Be brief and use the sources' own words. "
    "After each statement put the number of its source in brackets, like [1]. "
    "If the sources do not contain the answer, reply exactly: I don't know."
)
SYSTEM_WITHOUT_SOURCES = "You are a careful assistant. Answer briefly."
REFUSAL = "I don't know."


class Component(StrEnum):
    """What a segment's tokens are spent on."""

    TEMPLATE = "template"
    SYSTEM = "system"
    HISTORY = "history"
    QUESTION = "question"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Segment:
    """Token ids with one purpose; context segments name their document."""

    component: Component
    ids: tuple[int, ...]
    document_id: str | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """Segments in order; their concatenation is exactly what the engine reads."""

    segments: tuple[Segment, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """All token ids."""
        return tuple(token for segment in self.segments for token in segment.ids)

    @property
    def components(self) -> Components:
        """Tokens by component; the total is `len(ids)`."""
        totals = dict.fromkeys(Component, 0)
        for segment in self.segments:
            totals[segment.component] += len(segment.ids)
        return Components(**{component.value: count for component, count in totals.items()})

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


def build_prompt(
    tokenizer: Tokenizer,
    *,
    question: str,
    context: Context,
    history: Sequence[Message] = (),
    instructions: str = "",
    grounded: bool = True,
) -> Prompt:
    """Lay out system, history, sources and question in the model's chat template.

    Args:
        tokenizer: The serving tokenizer.
        question: The user's question, verbatim.
        context: Sources that fit.
        history: Earlier turns, oldest first, roles "user" and "assistant".
        instructions: The caller's own system text, put after ours.
        grounded: Whether the answer must come from the sources; otherwise the prompt has none.
    """
    assert grounded or not context.sources, "sources are only shown to a grounded prompt"
    system = SYSTEM if grounded else SYSTEM_WITHOUT_SOURCES
    if instructions:
        system = f"{system}\n{instructions}"
    frame = tokenizer.chat_frame(["system", *(message.role for message in history), "user"])

    def text(component: Component, content: str, document_id: str | None = None) -> Segment:
        return Segment(component, tuple(tokenizer.encode(content)), document_id)

    segments = [Segment(Component.TEMPLATE, frame[0]), text(Component.SYSTEM, system)]
    for piece, message in zip(frame[1:], history, strict=False):
        segments += [Segment(Component.TEMPLATE, piece), text(Component.HISTORY, message.content)]
    segments.append(Segment(Component.TEMPLATE, frame[-2]))
    if grounded:
        segments.append(text(Component.TEMPLATE, "Sources:\n\n"))
        for source in context.sources:
            document = source.hit.chunk.document_id
            segments.append(text(Component.CONTEXT, source.header, document))
            segments.append(text(Component.CONTEXT, source.body, document))
        segments.append(text(Component.TEMPLATE, "Question: "))
    segments += [text(Component.QUESTION, question), Segment(Component.TEMPLATE, frame[-1])]
    return Prompt(tuple(segments))
