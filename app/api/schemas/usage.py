"""Bodies of usage reports: OpenAI's page, bucket, result shape with our fields beside theirs."""

from typing import Literal

from pydantic import Field

from app.api.schemas.answers import Money
from app.api.schemas.shape import ResponseBody


class ReportComponents(ResponseBody):
    """Prompt tokens by purpose; they sum to `input_tokens`."""

    system: int = Field(description="Instructions.")
    history: int = Field(description="Earlier turns.")
    context: int = Field(description="Sources.")
    question: int = Field(description="Questions.")
    template: int = Field(description="Chat templates and labels.")


class CompletionsResult(ResponseBody):
    """One group of one bucket; a dimension that was not grouped by is null."""

    object: Literal["organization.usage.completions.result"] = Field(
        default="organization.usage.completions.result", description="OpenAI's name for it."
    )
    input_tokens: int = Field(description="Prompt tokens, cached ones included.")
    input_cached_tokens: int = Field(description="Of these, served from the KV cache.")
    input_uncached_tokens: int = Field(description="Of these, computed.")
    output_tokens: int = Field(description="Tokens generated, also for readers who left.")
    output_delivered_tokens: int = Field(description="Tokens a reader took.")
    num_model_requests: int = Field(description="Model calls.")
    num_aborted: int = Field(description="Calls cut off by the client or by us.")
    num_recovered: int = Field(description="Calls whose books were closed after a crash.")
    num_unpriced: int = Field(description="Calls whose model had no price.")
    components: ReportComponents = Field(description="Prompt tokens by purpose.")
    cost: Money = Field(description="What they cost; null while nothing was priced.")
    project_id: str | None = Field(default=None, description="Always null here.")
    user_id: str | None = Field(default=None, description="Set when grouped by it.")
    api_key_id: str | None = Field(default=None, description="Set when grouped by it.")
    model: str | None = Field(default=None, description="Set when grouped by it.")
    operation: str | None = Field(default=None, description="Always null here.")
    status: str | None = Field(default=None, description="Always null here.")


class UsageBucket(ResponseBody):
    """One time bucket."""

    object: Literal["bucket"] = Field(default="bucket", description="Always `bucket`.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    start_local: str = Field(description="The start in the report's time zone.")
    results: list[CompletionsResult] = Field(description="One per group; empty when nothing was spent.")


class UsagePage(ResponseBody):
    """A page of buckets, oldest first."""

    object: Literal["page"] = Field(default="page", description="Always `page`.")
    data: list[UsageBucket] = Field(description="The buckets.")
    has_more: bool = Field(description="Whether another page follows.")
    next_page: str | None = Field(description="Pass as `page`.")
    as_of: int = Field(description="When the report was made, Unix seconds.")
    final: bool = Field(description="Whether every bucket is closed, so that it will never change.")
    tz: str = Field(description="The report's time zone.", examples=["UTC"])


class EmbeddingTotals(ResponseBody):
    """What was embedded in one period, queries and documents."""

    num_model_requests: int = Field(description="Model calls.")
    input_tokens: int = Field(description="Tokens embedded.")


class OwnPeriod(ResponseBody):
    """What was spent in one period."""

    start_time: int = Field(description="Unix seconds.")
    completions: CompletionsResult = Field(description="Answers.")
    embeddings: EmbeddingTotals = Field(description="Embeddings.")


class OwnUsage(ResponseBody):
    """The caller's own use."""

    object: Literal["usage"] = Field(default="usage", description="Always `usage`.")
    user_id: str = Field(description="Whose use.")
    today: OwnPeriod = Field(description="Since midnight UTC.")
    month: OwnPeriod = Field(description="Since the first of the month, UTC.")
    all_time: OwnPeriod = Field(description="Ever.")
    as_of: int = Field(description="When the report was made, Unix seconds.")
    tz: str = Field(description="The time zone of the periods.", examples=["UTC"])
