"""Bodies of /v1/ask."""

from typing import Literal

from pydantic import Field

from app.answering.answer import AbstentionReport, Answer, Budget, SourceReport
from app.answering.citation import Citation
from app.answering.formats import Format
from app.api.schemas.search import RERANK, Scoped
from app.api.schemas.shape import ResponseBody
from app.api.schemas.token_usage import UsageBody
from retrieval.types import SearchMode, Span


class AskRequest(Scoped):
    """A question and how to answer it."""

    question: str = Field(min_length=1, description="The question.", examples=["How did revenue develop?"])
    conversation_id: str | None = Field(
        default=None,
        description="A conversation to ask in: what was said before is shown to the model, a follow-up is rewritten to "
        "stand alone, and the answer is kept.",
        examples=[None],
    )
    mode: SearchMode = Field(default=SearchMode.HYBRID, description="How passages are found.")
    rerank: bool | None = Field(default=None, description=RERANK)
    top_k: int = Field(default=8, ge=1, le=200, description="Chunks to retrieve.")
    max_context_tokens: int | None = Field(
        default=None, ge=1, description="Most tokens of sources in the prompt; default by setting (3000)."
    )
    max_output_tokens: int | None = Field(
        default=None, ge=1, le=1_000_000, description="Most tokens to generate; default by setting (512)."
    )
    temperature: float = Field(default=0.0, ge=0, le=2, description="0 is greedy and reproducible.")
    top_p: float = Field(default=1.0, gt=0, le=1, description="Nucleus: the smallest set of tokens of this mass.")
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63, description="Makes a sampled answer reproducible.")
    abstention_threshold: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Refuse from this probability of refusing on, by the model's own reckoning, and answer below it; "
        "default by setting (the model decides). Has no effect on JSON or with a remote model.",
        examples=[0.5],
    )
    on_no_evidence: Literal["refuse", "answer"] = Field(
        default="refuse",
        description="`refuse` generates nothing when no passage is about the question; `answer` lets the model "
        "answer without sources.",
    )
    format: Format = Field(
        default="markdown",
        description="`text` leaves out Markdown's marks; `json` answers with one JSON document and no markers.",
    )
    json_schema: dict[str, object] | None = Field(
        default=None,
        description="What a JSON answer satisfies; null is `{answer, sources}`, the sources by number. A schema of "
        "one's own is not filled where `answered` is false: `answer` is a sentence then. A keyword that cannot be "
        "enforced is a 422 that names it.",
        examples=[None],
    )
    strict: bool | None = Field(
        default=None,
        description="Leave out of the answer what is not verified; default by setting (no). Has no effect on JSON.",
    )
    stream: bool = Field(default=False, description="Answer as server-sent events.")
    dry_run: bool = Field(default=False, description="Return sources, components and budget; generate nothing.")


class CitationBody(ResponseBody):
    """A footnote."""

    index: int = Field(description="The number in the marker, `[1]`.", examples=[1])
    answer_start: int = Field(description="Where the marker starts in the answer.", examples=[18])
    answer_end: int = Field(description="One past its end.", examples=[21])
    document_id: str = Field(description="The cited document.", examples=["doc_01k9"])
    version: int = Field(description="The cited version.", examples=[1])
    filename: str = Field(description="The document's name.", examples=["report.pdf"])
    chunk_id: str = Field(description="The chunk the passage lies in.", examples=["chk_12"])
    page_start: int | None = Field(description="First page of the passage, from 1.", examples=[4])
    page_end: int | None = Field(description="Last page of the passage.", examples=[4])
    start_char: int = Field(description="First character in the canonical text.", examples=[10233])
    end_char: int = Field(description="One past its last character.", examples=[10291])
    cited_text: str = Field(description="Exactly `content[start_char:end_char]` of that version.")
    verified: bool = Field(
        description="Whether the passage was found to support the sentence: `support` reaches the threshold, and the "
        "passage holds its numbers, dates and names and does not say the opposite."
    )
    support: float = Field(
        description="How well the passage supports the sentence, in [0, 1]: by words, by meaning, or by the verifying "
        "model where one is set.",
        examples=[0.93],
    )
    origin: Literal["model", "attributed"] = Field(
        description="Who placed the marker: the model, or Footnote after finding a passage that supports the sentence."
    )

    @classmethod
    def of(cls, citation: Citation) -> "CitationBody":
        """The body for a citation."""
        return cls(**{name: getattr(citation, name) for name in cls.model_fields})


class SpanBody(ResponseBody):
    """Characters of the answer."""

    start: int = Field(description="First character.")
    end: int = Field(description="One past the last.")

    @classmethod
    def of(cls, span: Span) -> "SpanBody":
        """The body for a span."""
        return cls(start=span.start_char, end=span.end_char)


class DroppedBody(ResponseBody):
    """A hit the model did not read."""

    chunk_id: str = Field(description="The chunk.")
    reason: str = Field(description="`budget`, `duplicate`, or `merged`: its text is in the source of a better hit.")


class SourcesBody(ResponseBody):
    """Chunks on their way from retrieval to citation."""

    retrieved: int = Field(description="Hits the search returned.", examples=[8])
    presented: list[str] = Field(description="Chunk ids the model read, in the order of their numbers.")
    cited: list[str] = Field(description="Chunk ids with a footnote.")
    compressed: list[str] = Field(description="Presented chunks of which not every sentence was kept.")
    summarised: list[str] = Field(
        description="Compressed chunks of which the model read a summary in place of what did not fit."
    )
    dropped: list[DroppedBody] = Field(description="Hits that were not presented, and why.")

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


class BudgetBody(ResponseBody):
    """How the context window is spent."""

    context_window: int = Field(description="Tokens the model can hold.", examples=[8192])
    reserved_output: int = Field(description="Tokens kept for the answer.", examples=[512])
    headroom: int = Field(description="Tokens left unused.", examples=[5369])

    @classmethod
    def of(cls, budget: Budget) -> "BudgetBody":
        """The body for a budget."""
        return cls(
            context_window=budget.context_window, reserved_output=budget.reserved_output, headroom=budget.headroom
        )


class AbstentionBody(ResponseBody):
    """Where answering was given up, and how near it was to that."""

    stage: Literal["retrieval", "reader", "model", "verifier"] | None = Field(
        description="`retrieval`: nothing found is about the question, nothing was generated; `reader`: the sources "
        "seem not to hold the answer, nothing was generated; `model`: it read the sources and refuses; `verifier`: no "
        "sentence was found supported; null: it was not given up.",
        examples=[None],
    )
    score: float | None = Field(
        description="At `retrieval` how much evidence was found; at `reader` the probability that the sources hold no "
        "answer; otherwise the model's probability of refusing. Null where it is not known.",
        examples=[0.04],
    )
    threshold: float | None = Field(
        description="What the score was compared with: evidence must reach it, the probability of refusing stay "
        "below it; null where the model decides.",
        examples=[None],
    )

    @classmethod
    def of(cls, report: AbstentionReport) -> "AbstentionBody":
        """The body for a report."""
        return cls(stage=report.stage, score=report.score, threshold=report.threshold)


class AnswerBody(ResponseBody):
    """An answer with its footnotes and its bill."""

    id: str = Field(description="The request's id; the ledger knows it.", examples=["req_01k9"])
    object: Literal["answer"] = Field(default="answer", description="Always `answer`.")
    model: str = Field(description="The generator.", examples=["SmolLM2-135M-Instruct"])
    answered: bool = Field(description="False when the documents do not hold an answer.")
    reason: str | None = Field(
        description="Why not: `no_evidence` (nothing about it was found, nothing was generated), `not_in_sources` "
        "(the model read the sources and says so), `not_verified` (strict, and no sentence was found supported), "
        "`dry_run`, `error`."
    )
    conversation_id: str | None = Field(description="The conversation it was asked in.", examples=[None])
    standalone_question: str | None = Field(
        description="What a follow-up was rewritten to, so that it can be understood and searched for alone; null "
        "where the question is used as it was asked.",
        examples=[None],
    )
    answer: str = Field(description="The answer, with markers.", examples=["Revenue rose 12% [1]."])
    finish_reason: str = Field(description="stop, length, cancelled or error.", examples=["stop"])
    citations: list[CitationBody] = Field(description="Footnotes, in the order of their markers.")
    uncited_spans: list[SpanBody] = Field(description="Sentences of the answer without a supporting source.")
    quoted_spans: list[SpanBody] = Field(
        description="What is quoted from the documents, word for word, and no model wrote: all of an answer without a "
        "language model, or what follows one of which nothing could be verified."
    )
    abstention: AbstentionBody = Field(description="Where answering was given up, as data.")
    sources: SourcesBody = Field(description="From retrieval to citation.")
    usage: UsageBody = Field(description="The bill.")
    budget: BudgetBody = Field(description="The context window.")
    timings_ms: dict[str, float | None] = Field(
        description="Milliseconds: queue, retrieve, rerank, first_token, total."
    )

    @classmethod
    def of(cls, answer: Answer) -> "AnswerBody":
        """The body for an answer."""
        return cls(
            id=answer.id,
            model=answer.model,
            answered=answer.answered,
            reason=answer.reason,
            conversation_id=answer.conversation_id,
            standalone_question=answer.standalone_question,
            answer=answer.text,
            finish_reason=answer.finish_reason,
            citations=[CitationBody.of(citation) for citation in answer.citations],
            uncited_spans=[SpanBody.of(span) for span in answer.uncited],
            quoted_spans=[SpanBody.of(span) for span in answer.quoted],
            abstention=AbstentionBody.of(answer.abstention),
            sources=SourcesBody.of(answer.sources),
            usage=UsageBody.of(answer.usage),
            budget=BudgetBody.of(answer.budget),
            timings_ms=dict(answer.timings_ms),
        )
