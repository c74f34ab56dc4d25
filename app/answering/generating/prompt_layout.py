"""Lays out prompts in the model's chat template: for an answer, and for a summary of a passage.

Each piece is tokenised separately, so that the tokens of each component are known.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from app.answering.generating.wording import Wording
from app.answering.prompt import FENCE, Component, Prompt, Segment, quoted
from app.answering.question import Message
from generation.ports import Tokenizer
from retrieval.highlights import Highlight
from retrieval.types import Context

JSON_FORM = "Reply with one JSON document that satisfies this JSON Schema: "
DEFAULT_WORDING = Wording()
# An adapter is trained with one layout and wording and may do worse with another: a change needs a new number and a
# measurement. The shipped one was trained with 2 (docs/EXPERIMENTS.md, 2026-11-24).
LAYOUT = "3"
_OPENING, _CLOSING = f"{FENCE}\n", f"{FENCE}\n\n"
_END_OF_HIGHLIGHTS = f"{FENCE}\n"
_END_OF_POINTERS = f" {FENCE}"  # each pointer is part of one line
SYSTEM_SUMMARY = (
    "Shorten the passage to what concerns the question, in the passage's own words. "
    "Keep names, numbers and dates. Reply with the shortened text alone. "
    "If nothing in the passage concerns the question, reply exactly: Nothing."
)


def build_prompt(
    tokenizer: Tokenizer,
    *,
    question: str,
    context: Context,
    history: Sequence[Message] = (),
    instructions: str = "",
    grounded: bool = True,
    json_schema: str | None = None,
    highlights: Sequence[Highlight] = (),
    pointers: Sequence[Highlight] = (),
    wording: Wording = DEFAULT_WORDING,
) -> Prompt:
    """Lay out system, history, sources, question, highlights and pointers in the model's chat template.

    Earlier turns are turns of the chat, or quoted behind the sources where the wording has a line for them: a question
    about the same sources then repeats the prompt up to their end, and the engine reads what follows alone.

    Args:
        tokenizer: The serving tokenizer.
        question: The user's question, verbatim.
        context: Sources that fit.
        history: Earlier turns, oldest first, roles "user" and "assistant".
        instructions: The client's system text, put behind Footnote's.
        grounded: Whether the answer must come from the sources; otherwise the prompt has none.
        json_schema: The JSON schema of the answer, as text; None asks for prose with markers.
        highlights: Sentences of the sources that are repeated behind the question.
        pointers: Spans of the sources that may be the answer.
        wording: The fixed texts of the prompt.
    """
    assert grounded or not context.sources, "sources are only shown to a grounded prompt"
    system = _system(wording, question, grounded=grounded, json_schema=json_schema)
    if instructions:
        system = f"{system}\n{instructions}"
    quotes_turns = grounded and bool(wording.conversation)
    turns = () if quotes_turns else history
    frame = tokenizer.chat_frame(["system", *(message.role for message in turns), "user"])

    def text(component: Component, content: str, document_id: str | None = None) -> Segment:
        return Segment(component, tuple(tokenizer.encode(content)), document_id)

    segments = [Segment(Component.TEMPLATE, frame[0]), text(Component.SYSTEM, system)]
    for piece, message in zip(frame[1:], turns, strict=False):
        segments += [Segment(Component.TEMPLATE, piece), text(Component.HISTORY, turn(message))]
    segments.append(Segment(Component.TEMPLATE, frame[-2]))
    if grounded:
        segments.append(replace(text(Component.TEMPLATE, f"{wording.sources}\n\n"), opens_sources=True))
        for source in context.sources:
            document = source.hit.chunk.document_id
            segments += [text(Component.TEMPLATE, _OPENING), text(Component.CONTEXT, quoted(source.header), document)]
            segments.append(replace(text(Component.CONTEXT, quoted(source.body), document), body=True))
            segments.append(text(Component.TEMPLATE, _CLOSING))
        if quotes_turns and history:
            segments.append(text(Component.TEMPLATE, f"{wording.conversation}\n\n"))
            segments += [text(*piece) for piece in conversation(history)]
            segments.append(text(Component.TEMPLATE, "\n"))
        if reminder := wording.reminder if json_schema is None else wording.reminder_json:
            segments.append(text(Component.SYSTEM, f"{reminder}\n\n"))
        segments.append(text(Component.TEMPLATE, f"{wording.question} "))
    segments.append(text(Component.QUESTION, question))
    if highlights:
        segments.append(text(Component.TEMPLATE, _above_highlights(wording)))
        segments += [text(Component.CONTEXT, quoted(line.line), line.document_id) for line in highlights]
        segments.append(text(Component.TEMPLATE, _END_OF_HIGHLIGHTS))
    if pointers:
        segments.append(text(Component.TEMPLATE, _before_pointers(wording, highlights)))
        segments += [text(Component.CONTEXT, quoted(line.line), line.document_id) for line in pointers]
        segments.append(text(Component.TEMPLATE, _END_OF_POINTERS))
    segments.append(Segment(Component.TEMPLATE, frame[-1]))
    return Prompt(tuple(segments))


def turn(message: Message) -> str:
    """The text of an earlier turn; an answer may quote a document, which must not open or close a fence."""
    return message.content.replace(FENCE, "'''") if message.role == "assistant" else message.content


def conversation(history: Iterable[Message]) -> Iterator[tuple[Component, str]]:
    """The pieces of text that quote earlier turns between fences, each with its component.

    All turns are between two fences: a small model answers in the form of a conversation whose answers each have
    their own (docs/EXPERIMENTS.md).
    """
    yield Component.TEMPLATE, f"{FENCE}\n"
    for message in history:
        yield Component.TEMPLATE, "User: " if message.role == "user" else "Assistant: "
        yield Component.HISTORY, f"{quoted(message.content)}\n"
    yield Component.TEMPLATE, f"{FENCE}\n"


def shown(tokenizer: Tokenizer, *, header: str, body: str) -> list[int]:
    """Token ids of one source in a grounded prompt."""
    pieces = (_OPENING, quoted(header), quoted(body), _CLOSING)
    return [token for piece in pieces for token in tokenizer.encode(piece)]


def fence_tokens(tokenizer: Tokenizer) -> int:
    """The tokens of a source other than its header and body."""
    return tokenizer.count(_OPENING) + tokenizer.count(_CLOSING)


def pointing_tokens(tokenizer: Tokenizer, wording: Wording) -> int:
    """The most tokens of highlights and pointers other than their own lines."""
    before = max(tokenizer.count(_before_pointers(wording, highlights)) for highlights in (True, False))
    after = tokenizer.count(_END_OF_HIGHLIGHTS) + tokenizer.count(_END_OF_POINTERS)
    return tokenizer.count(_above_highlights(wording)) + before + after


def build_summary_prompt(tokenizer: Tokenizer, *, question: str, passage: str, document_id: str) -> Prompt:
    """The prompt that asks for a summary of `passage`, text of one document, with regard to `question`."""
    frame = tokenizer.chat_frame(["system", "user"])

    def text(component: Component, content: str) -> Segment:
        return Segment(component, tuple(tokenizer.encode(content)))

    return Prompt(
        (
            Segment(Component.TEMPLATE, frame[0]),
            text(Component.SYSTEM, SYSTEM_SUMMARY),
            Segment(Component.TEMPLATE, frame[1]),
            text(Component.TEMPLATE, f"Passage:\n\n{_OPENING}"),
            replace(text(Component.CONTEXT, quoted(passage)), document_id=document_id, body=True),
            text(Component.TEMPLATE, f"\n{_CLOSING}Question: "),
            text(Component.QUESTION, question),
            # Small models answer a question at the end of the prompt instead of shortening the passage.
            text(Component.TEMPLATE, "\n\nThe passage, shortened to what concerns the question:"),
            Segment(Component.TEMPLATE, frame[2]),
        )
    )


def _above_highlights(wording: Wording) -> str:
    return f"\n\n{wording.highlights}\n{_OPENING}"


def _before_pointers(wording: Wording, highlights: object) -> str:
    """A highlight's line ends; the question's does not."""
    gap = "\n" if highlights else "\n\n"
    return f"{gap}{wording.pointer} {FENCE}"


def _system(wording: Wording, question: str, *, grounded: bool, json_schema: str | None) -> str:
    if json_schema is None:
        return wording.system_for(question) if grounded else wording.without_sources
    return f"{wording.system_json} {JSON_FORM}{json_schema}" if grounded else f"{JSON_FORM}{json_schema}"
