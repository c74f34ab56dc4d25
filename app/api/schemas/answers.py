"""Bodies of `POST /v1/ask`."""

from typing import Any, Literal

from pydantic import Field, create_model

from app.answering.answers.answer import AbstentionReport, Answer, SourceReport, WindowUse, Words, WordsState
from app.answering.answers.parts import Reason
from app.answering.citing.citation import Citation
from app.answering.formats.answer_formats import Format
from app.answering.question import AnswerLength
from app.api.schemas.bounds import LARGEST_INTEGER, MOST_QUESTION, Described, Id
from app.api.schemas.parts import ConflictBody, PartBody, QuotedSpanBody, SpanBody, part_body
from app.api.schemas.sampling import SamplingFields
from app.api.schemas.search import RERANK, Scoped
from app.api.schemas.shape import ResponseBody
from app.api.schemas.token_usage import UsageBody
from retrieval.types import SearchMode

QUOTED_SPANS = (
    "Text quoted word for word from the documents, not generated, likeliest first: the default answer, or quotations "
    "after an answer of which nothing could be verified."
)
ANSWERS = "The probability in [0, 1] that the question is answered; null where nothing estimated it."
PARTS = (
    "The parts of the text in order, each of which says what it is; between them are only white space and the signs of "
    "Markdown quotations."
)
WORDS = "What became of a language model's words."
CONFLICTS = "Footnotes whose passages give different numbers, dates or names for what is asked; empty where none do."
LEAD = "The words at the beginning of the answer that answer the question, without their marker; null without any."


class AskRequest(SamplingFields, Scoped):
    """A question, and options for finding sources and generating the answer."""

    question: str = Field(
        min_length=1, max_length=MOST_QUESTION, description="The question.", examples=["How did revenue develop?"]
    )
    conversation_id: Id | None = Field(
        default=None,
        description="The conversation to ask in: the model sees its earlier turns, a follow-up question is rewritten "
        "to stand alone, and the answer is stored in it.",
        examples=[None],
    )
    standalone: bool = Field(
        default=False,
        description="Ask exactly this question: it is not rewritten, and the model sees no earlier turns of the "
        "conversation. The answer is stored in it all the same.",
    )
    mode: SearchMode = Field(default=SearchMode.HYBRID, description="Search mode: `hybrid`, `dense` or `lexical`.")
    rerank: bool | None = Field(default=None, description=RERANK)
    top_k: int = Field(default=8, ge=1, le=200, description="Number of chunks to retrieve.")
    max_context_tokens: int | None = Field(
        default=None,
        ge=1,
        le=LARGEST_INTEGER,
        description="Maximum number of source tokens in the prompt; default: the server's setting (3000).",
    )
    max_output_tokens: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Maximum number of tokens to generate; default: the server's setting (512).",
    )
    temperature: float = Field(
        default=0.0, ge=0, le=2, description="Sampling temperature; 0 is greedy and reproducible."
    )
    top_p: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Nucleus sampling: only the most probable tokens with this total probability.",
    )
    abstention_threshold: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Refuse to answer when the model's own probability of refusing is at least this; default: the "
        "server's setting (the model decides). No effect on JSON answers or with a remote model.",
        examples=[0.5],
    )
    on_no_evidence: Literal["refuse", "answer"] = Field(
        default="refuse",
        description="When no passage is about the question: `refuse` generates nothing, `answer` lets the model "
        "answer without sources.",
    )
    format: Format = Field(
        default="markdown",
        description="`text` is prose without Markdown; `json` is one JSON document without footnote markers.",
    )
    json_schema: Described | None = Field(
        default=None,
        description="JSON Schema of a JSON answer; null is `{answer, sources}` with source numbers. When `answered` is "
        "false, your schema is not used and `answer` is a sentence. A keyword that cannot be enforced is a 422 that "
        "names it.",
        examples=[None],
    )
    length: AnswerLength = Field(
        default="normal",
        description="How much is told: `short` is the likeliest quote alone, or a sentence; `long` is everything the "
        "passages say about it.",
    )
    strict: bool | None = Field(
        default=None,
        description="Remove unverified sentences from the answer; default: the server's setting (no). No effect on "
        "JSON.",
    )
    stream: bool = Field(default=False, description="Stream the answer as server-sent events.")
    dry_run: bool = Field(
        default=False, description="Return sources, token counts and budget without generating an answer."
    )


class CitationBody(ResponseBody):
    """A footnote."""

    index: int = Field(description="The number in the marker, as in `[1]`.", examples=[1])
    answer_start: int = Field(description="First character of the marker in the answer.", examples=[18])
    answer_end: int = Field(description="One past the last character of the marker.", examples=[21])
    document_id: str = Field(description="The cited document.", examples=["doc_01k9"])
    version: int = Field(description="The cited version.", examples=[1])
    filename: str = Field(description="The document's name.", examples=["report.pdf"])
    chunk_id: str = Field(description="The chunk that holds the passage.", examples=["chk_12"])
    page_start: int | None = Field(description="First page of the passage, from 1.", examples=[4])
    page_end: int | None = Field(description="Last page of the passage.", examples=[4])
    start_char: int = Field(description="First character in the canonical text.", examples=[10233])
    end_char: int = Field(description="One past its last character.", examples=[10291])
    cited_text: str = Field(description="Exactly `content[start_char:end_char]` of that version.")
    verified: bool = Field(
        description="Whether the passage supports the sentence (`support` reaches its threshold, and the passage "
        "contains the sentence's numbers, dates and names and does not contradict it), and the question is almost "
        "certainly answered (`answers` reaches its threshold)."
    )
    support: float = Field(
        description="How well the passage supports the sentence, in [0, 1]: by shared words, by similarity of "
        "meaning, or by the verification model when one is configured.",
        examples=[0.93],
    )
    answers: float | None = Field(
        description="The probability in [0, 1] that the passage answers the question; null where nothing estimated it.",
        examples=[0.97],
    )
    section: str | None = Field(
        description="The innermost heading above the passage; null where there is none.", examples=["3 Leave"]
    )
    sheet: str | None = Field(
        description="The sheet of a spreadsheet that the passage is on; null in other formats.", examples=[None]
    )
    cell: str | None = Field(
        description="The cell of the sheet with the answering words, or the range of cells of the passage, such as "
        "`A27:J27`; null in other formats.",
        examples=["B27"],
    )
    current_version: int | None = Field(
        default=None,
        exclude_if=lambda version: version is None,
        description="The version that replaced the cited one while the answer was written; absent where none did. The "
        "passage and its words are those of `version`.",
        examples=[2],
    )
    origin: Literal["model", "attributed"] = Field(
        description="Source of the marker: `model`, or `attributed` by Footnote, which found a supporting passage."
    )

    @classmethod
    def of(cls, citation: Citation) -> "CitationBody":
        """The body for a citation."""
        return cls(**{name: getattr(citation, name) for name in cls.model_fields})


class DroppedBody(ResponseBody):
    """A hit that was not put into the prompt."""

    chunk_id: str = Field(description="The chunk.")
    reason: str = Field(
        description="`budget`: no room; `duplicate`; `merged`: its text is part of a better hit's source."
    )


class SourcesBody(ResponseBody):
    """The chunks at each step from retrieval to citation."""

    retrieved: int = Field(description="Hits the search returned.", examples=[8])
    presented: list[str] = Field(description="Ids of the chunks in the prompt, in the order of their numbers.")
    cited: list[str] = Field(description="Ids of the chunks that a footnote cites.")
    compressed: list[str] = Field(
        description="Ids of presented chunks from which sentences were removed to save tokens."
    )
    summarised: list[str] = Field(
        description="Ids of compressed chunks whose removed sentences were replaced by a summary."
    )
    dropped: list[DroppedBody] = Field(description="Hits that were not presented, with the reason.")

    @classmethod
    def of(cls, report: SourceReport) -> "SourcesBody":
        """The body for a report."""
        return cls(
            retrieved=report.retrieved,
            presented=list(report.presented),
            cited=list(report.cited),
            compressed=list(report.compressed),
            summarised=list(report.summarised),
            dropped=[DroppedBody(chunk_id=item.chunk_id, reason=item.reason) for item in report.dropped],
        )


class WindowUseBody(ResponseBody):
    """The use of the model's context window."""

    context_window: int = Field(description="Size of the context window in tokens.", examples=[8192])
    reserved_output: int = Field(description="Tokens reserved for the answer.", examples=[512])
    headroom: int = Field(description="Tokens left unused.", examples=[5369])

    @classmethod
    def of(cls, budget: WindowUse) -> "WindowUseBody":
        """The body for a budget."""
        return cls(
            context_window=budget.context_window, reserved_output=budget.reserved_output, headroom=budget.headroom
        )


class AbstentionBody(ResponseBody):
    """The stage at which the answer was refused, with its score and threshold."""

    stage: Literal["retrieval", "reader", "model", "verifier"] | None = Field(
        description="`retrieval`: no passage is about the question, nothing was generated; `reader`: the sources "
        "probably do not contain the answer, nothing was generated; `model`: the model read the sources and refused; "
        "`verifier`: no sentence could be verified; null: the question was answered.",
        examples=[None],
    )
    score: float | None = Field(
        description="At `retrieval` the strength of the evidence; at `reader` the probability that the sources do not "
        "contain the answer; otherwise the model's probability of refusing. Null when unknown.",
        examples=[0.04],
    )
    threshold: float | None = Field(
        description="The threshold for the score: evidence must reach it, a probability must stay below it; null when "
        "the model decides.",
        examples=[None],
    )

    @classmethod
    def of(cls, report: AbstentionReport) -> "AbstentionBody":
        """The body for a report."""
        return cls(stage=report.stage, score=report.score, threshold=report.threshold)


class WordsBody(ResponseBody):
    """What became of the text that a language model writes as an answer."""

    state: WordsState = Field(
        description="`none`: no language model wrote, as where quotes answer; `waiting`: it has not written yet, and "
        "quotes are shown meanwhile (in the event `quotes`); `shown`: the answer has its words; `withheld`: the answer "
        "has something else in their place. Withheld words are on the bill too.",
        examples=["none"],
    )
    reason: str | None = Field(
        description="Why they were withheld: `not_in_sources`, it refused, and quotes are shown as the nearest "
        "passages; `not_verified`, no sentence of it could be verified. Else null.",
        examples=[None],
    )

    @classmethod
    def of(cls, words: Words) -> "WordsBody":
        """The body for a model's words."""
        return cls(state=words.state, reason=words.reason)


class AnswerBody(ResponseBody):
    """An answer with its footnotes, sources and token usage."""

    id: str = Field(description="The request's id, by which the usage ledger names it.", examples=["req_01k9"])
    object: Literal["answer"] = Field(default="answer", description="Always `answer`.")
    model: str = Field(
        description="The language model that wrote the answer; where quotes answer, the model that read the passages. "
        "Empty when no model was called; `usage.calls` names them all.",
        examples=["evidence-minilm-l6"],
    )
    answered: bool = Field(description="False when the documents do not contain an answer.")
    reason: str | None = Field(
        description="Why `answered` is false; null when it is true. "
        + "; ".join(f"`{reason}`: {reason.meaning}" for reason in Reason)
        + "."
    )
    conversation_id: str | None = Field(description="The conversation that the question belongs to.", examples=[None])
    standalone_question: str | None = Field(
        description="The follow-up question rewritten to be understood without the conversation; null when the "
        "question was used unchanged.",
        examples=[None],
    )
    answer: str = Field(description="The answer, with markers.", examples=["Revenue rose 12% [1]."])
    finish_reason: str = Field(description="stop, length, repetition, cancelled or error.", examples=["stop"])
    citations: list[CitationBody] = Field(description="Footnotes, in the order of their markers.")
    uncited_spans: list[SpanBody] = Field(description="Sentences of the answer that no source supports.")
    quoted_spans: list[QuotedSpanBody] = Field(description=QUOTED_SPANS)
    parts: list[PartBody] = Field(description=PARTS)
    conflicts: list[ConflictBody] = Field(description=CONFLICTS)
    answers: float | None = Field(description=ANSWERS, examples=[0.97])
    words: WordsBody = Field(description=WORDS)
    lead: SpanBody | None = Field(description=LEAD, examples=[None])
    abstention: AbstentionBody = Field(description="The stage at which the answer was refused.")
    sources: SourcesBody = Field(description="The chunks at each step from retrieval to citation.")
    usage: UsageBody = Field(description="Token usage and cost.")
    budget: WindowUseBody = Field(description="The use of the context window.")
    timings_ms: dict[str, float | None] = Field(
        description="Durations in milliseconds: queue, retrieve, rerank, first_token, total."
    )

    @classmethod
    def of(cls, answer: Answer) -> "AnswerBody":
        """The body for an answer."""
        return cls(
            id=answer.id,
            model=answer.model,
            answered=answer.reason is None,
            reason=answer.reason,
            conversation_id=answer.conversation_id,
            standalone_question=answer.standalone_question,
            answer=answer.text,
            finish_reason=answer.finish_reason,
            citations=[CitationBody.of(citation) for citation in answer.citations],
            uncited_spans=[SpanBody.of(span) for span in answer.uncited],
            quoted_spans=[QuotedSpanBody.of_part(part) for part in answer.quotes],
            parts=[part_body(part) for part in answer.parts],
            conflicts=[ConflictBody.of(one) for one in answer.conflicts],
            answers=answer.probability,
            words=WordsBody.of(answer.words),
            lead=None if answer.lead is None else SpanBody.of(answer.lead),
            abstention=AbstentionBody.of(answer.abstention),
            sources=SourcesBody.of(answer.sources),
            usage=UsageBody.of(answer.usage),
            budget=WindowUseBody.of(answer.budget),
            timings_ms=dict(answer.timings_ms),
        )


DONE_LEAVES_OUT = frozenset({"object", "answer", "citations", "sources", "usage", "budget"})
"""Fields of an answer that its event `done` has not: most were in the events before it."""

_DONE: dict[str, Any] = {
    name: (field.annotation, field) for name, field in AnswerBody.model_fields.items() if name not in DONE_LEAVES_OUT
}
DoneBody = create_model(
    "DoneBody",
    __base__=ResponseBody,
    __doc__="The event `done`: how an answer ended, and what its text consists of.",
    **_DONE,
)
