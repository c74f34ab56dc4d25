"""Bodies of usage reports: OpenAI's page, bucket, result shape with our fields beside theirs."""

from typing import Generic, Literal, TypeVar

from pydantic import Field

from app.api.schemas.budgets import OwnBudget
from app.api.schemas.shape import RequestBody, ResponseBody
from app.api.schemas.token_usage import Money


class ReportComponents(ResponseBody):
    """Prompt tokens by purpose; they sum to `input_tokens`."""

    system: int = Field(description="Instructions.")
    history: int = Field(description="Earlier turns.")
    context: int = Field(description="Sources.")
    question: int = Field(description="Questions.")
    template: int = Field(description="Chat templates and labels.")


class _Grouped(ResponseBody):
    """What a result is grouped by; a dimension that was not asked for is null, one that a call has not is empty."""

    tenant_id: str | None = Field(default=None, description="Yours: a report is of one. Set when grouped by it.")
    project_id: str | None = Field(default=None, description="The one collection asked. Set when grouped by it.")
    user_id: str | None = Field(default=None, description="Set when grouped by it, also of users deleted since.")
    api_key_id: str | None = Field(default=None, description="Set when grouped by it.")
    model: str | None = Field(default=None, description="Set when grouped by it.")
    operation: str | None = Field(default=None, description="What was called for. Set when grouped by it.")
    status: str | None = Field(default=None, description="How calls ended, or `adjustment`. Set when grouped by it.")


class _Counted(_Grouped):
    """Calls and their input."""

    input_tokens: int = Field(description="Tokens read, cached ones included.")
    num_model_requests: int = Field(description="Model calls.")
    num_aborted: int = Field(description="Calls cut off by the client or by us.")
    num_recovered: int = Field(description="Calls whose books were closed after a crash.")
    num_unpriced: int = Field(description="Calls whose model had no price.")
    cost: Money = Field(description="What they cost; null while nothing was priced.")


class CompletionsResult(_Counted):
    """One group of one bucket."""

    object: Literal["organization.usage.completions.result"] = Field(
        default="organization.usage.completions.result", description="OpenAI's name for it."
    )
    input_cached_tokens: int = Field(description="Of the tokens read, served from the KV cache.")
    input_uncached_tokens: int = Field(description="Of the tokens read, computed.")
    output_tokens: int = Field(description="Tokens generated, also for readers who left.")
    output_delivered_tokens: int = Field(description="Tokens a reader took.")
    components: ReportComponents = Field(description="Prompt tokens by purpose.")


class EmbeddingsResult(_Counted):
    """One group of one bucket."""

    object: Literal["organization.usage.embeddings.result"] = Field(
        default="organization.usage.embeddings.result", description="OpenAI's name for it."
    )


class RerankResult(_Counted):
    """One group of one bucket."""

    object: Literal["organization.usage.rerank.result"] = Field(
        default="organization.usage.rerank.result", description="Named as OpenAI names the others."
    )


class JudgeResult(_Counted):
    """One group of one bucket."""

    object: Literal["organization.usage.judge.result"] = Field(
        default="organization.usage.judge.result", description="Named as OpenAI names the others."
    )


class CostsResult(_Grouped):
    """One group of one bucket."""

    object: Literal["organization.costs.result"] = Field(
        default="organization.costs.result", description="OpenAI's name for it."
    )
    amount: Money = Field(description="What it cost; null while nothing was priced.")
    quantity: int | None = Field(description="Tokens, when grouped by line item.")
    quantity_unit: Literal["tokens"] | None = Field(description="Of `quantity`.")
    num_unpriced: int | None = Field(description="Calls without a price; null by line item and document.")
    line_item: str | None = Field(
        default=None,
        description="Set when grouped by it: a model and what of it was paid for, or `adjustment`.",
        examples=["m-1, cached input"],
    )
    document_id: str | None = Field(
        default=None, description="Set when grouped by it; empty is what belongs to no document."
    )


Result = TypeVar("Result")


class Bucket(ResponseBody, Generic[Result]):
    """One time bucket."""

    object: Literal["bucket"] = Field(default="bucket", description="Always `bucket`.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    start_local: str = Field(description="The start in the report's time zone.")
    results: list[Result] = Field(description="One per group; empty when nothing was spent.")


class ReportPage(ResponseBody, Generic[Result]):
    """A page of buckets, oldest first."""

    object: Literal["page"] = Field(default="page", description="Always `page`.")
    data: list[Bucket[Result]] = Field(description="The buckets.")
    has_more: bool = Field(description="Whether another page follows.")
    next_page: str | None = Field(description="Pass as `page`.")
    as_of: int = Field(description="When the report was made, Unix seconds.")
    final: bool = Field(description="Whether every bucket is closed, so that it will never change.")
    tz: str = Field(description="The report's time zone.", examples=["UTC"])


class DocumentResult(ResponseBody):
    """What one document took."""

    object: Literal["footnote.usage.documents.result"] = Field(
        default="footnote.usage.documents.result", description="Always this."
    )
    document_id: str = Field(description="The document.")
    name: str = Field(description="Its file name, or `(deleted)`.")
    deleted: bool = Field(description="Whether it is not there any more.")
    collection_id: str | None = Field(description="Its collection; null where it was deleted.")
    num_ingests: int = Field(description="Calls that embedded it.")
    ingest_tokens: int = Field(description="Tokens embedded.")
    ingest_cost: Money = Field(description="What that cost; null while nothing of it was priced.")
    num_retrieved: int = Field(description="Calls that had it in their context.")
    context_tokens: int = Field(description="Its tokens in their prompts.")
    context_cost: Money = Field(
        description="Its share of what they cost, by its tokens of the prompt; null while nothing was priced."
    )
    num_cited: int = Field(description="Whole answers that cite it; a model's answers in JSON cite nothing.")
    num_citations: int = Field(description="Footnotes that lead to it.")
    cost: Money = Field(description="Both costs, as far as they are known.")


class DocumentsPage(ResponseBody):
    """A page of documents, in the order asked for."""

    object: Literal["page"] = Field(default="page", description="Always `page`.")
    data: list[DocumentResult] = Field(description="The documents.")
    has_more: bool = Field(description="Whether another page follows.")
    next_page: str | None = Field(description="Pass as `page`.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive; all pages have the first one's.")
    as_of: int = Field(description="When the report was made, Unix seconds.")
    final: bool = Field(description="Whether the range is closed, so that no number will change.")


class RebuildBody(RequestBody):
    """Which sums to build again."""

    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive; at most 31 days later.")
    tenant_id: str | None = Field(default=None, max_length=200, description="Whose; null is the caller's tenant.")


class RebuiltBody(ResponseBody):
    """Which sums were built again."""

    object: Literal["usage.rebuild"] = Field(default="usage.rebuild", description="Always `usage.rebuild`.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    days: int = Field(description="How many local days of the reporting zone it touches.")


class CallTotals(ResponseBody):
    """What models that only read took in one period."""

    num_model_requests: int = Field(description="Model calls.")
    input_tokens: int = Field(description="Tokens read.")


class OwnPeriod(ResponseBody):
    """What was spent in one period: every call is in one of its four parts."""

    start_time: int = Field(description="Unix seconds.")
    completions: CompletionsResult = Field(description="Answers.")
    embeddings: CallTotals = Field(description="Embeddings of queries and documents.")
    rerank: CallTotals = Field(description="The reranker.")
    judge: CallTotals = Field(description="What reads passages to find, keep or check an answer.")
    num_unpriced: int = Field(description="Calls of all parts whose model had no price.")
    cost: Money = Field(description="What all parts cost; null while nothing was priced.")


class OwnUsage(ResponseBody):
    """The caller's own use."""

    object: Literal["usage"] = Field(default="usage", description="Always `usage`.")
    user_id: str = Field(description="Whose use.")
    today: OwnPeriod = Field(description="Since midnight.")
    month: OwnPeriod = Field(description="Since the first of the month.")
    all_time: OwnPeriod = Field(description="Ever.")
    budgets: list[OwnBudget] = Field(description="What the caller's calls count against, and what is left of it.")
    as_of: int = Field(description="When the report was made, Unix seconds.")
    tz: str = Field(description="The time zone of the periods.", examples=["UTC"])
