"""Bodies of usage reports: OpenAI's pages, buckets and results, with additional fields."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import Field, create_model

from app.api.schemas.budgets import OwnBudget
from app.api.schemas.shape import RequestBody, ResponseBody
from app.api.schemas.token_usage import Money
from app.db.tables.usage_columns import COUNTED, MEASURES, PARTS
from app.usage.rollups.buckets import LATEST


def counts(says: Mapping[str, str]) -> dict[str, Any]:
    """The fields of counts for `create_model`, by name, with what they mean."""
    return {name: (int, Field(description=text)) for name, text in says.items()}


if TYPE_CHECKING:

    class ReportComponents(ResponseBody):
        """Prompt tokens by purpose; their sum is `input_tokens`."""

else:
    ReportComponents = create_model(
        "ReportComponents",
        __base__=ResponseBody,
        __module__=__name__,
        __doc__="Prompt tokens by purpose; their sum is `input_tokens`.",
        **counts({part: MEASURES[name].says for name, part in PARTS.items()}),
    )


class _Grouped(ResponseBody):
    """The group of a result: null for dimensions not grouped by, empty for calls without a value."""

    tenant_id: str | None = Field(default=None, description="Your tenant. Set when grouped by it.")
    project_id: str | None = Field(
        default=None, description="The collection, of requests to exactly one. Set when grouped by it."
    )
    user_id: str | None = Field(default=None, description="The user, also when deleted. Set when grouped by it.")
    api_key_id: str | None = Field(default=None, description="The key. Set when grouped by it.")
    model: str | None = Field(default=None, description="The model. Set when grouped by it.")
    operation: str | None = Field(default=None, description="The operation. Set when grouped by it.")
    status: str | None = Field(default=None, description="How calls ended, or `adjustment`. Set when grouped by it.")


class _Counted(_Grouped):
    """Model calls and their input tokens."""

    input_tokens: int = Field(description="Input tokens, cached ones included.")
    num_model_requests: int = Field(description="Number of model calls.")
    num_aborted: int = Field(description="Number of calls aborted by the client or the server.")
    num_recovered: int = Field(description="Number of calls that were settled after a crash.")
    num_unpriced: int = Field(description="Number of calls whose model had no price.")
    cost: Money = Field(description="Cost; null when no call had a price.")


if TYPE_CHECKING:

    class _ReadAndWritten(_Counted):
        """Model calls, and their tokens by what was read, reused and written."""

else:
    _ReadAndWritten = create_model("_ReadAndWritten", __base__=_Counted, __module__=__name__, **counts(COUNTED))


class UsageResult(_ReadAndWritten):
    """The result for one group of one bucket: calls of every model."""

    object: Literal["footnote.usage.result"] = Field(
        default="footnote.usage.result", description="Always `footnote.usage.result`."
    )
    num_answers: int | None = Field(
        description="Number of questions that ended, however they were answered: by quotes, by a language model, by a "
        "refusal, or not at all. Null when grouped or filtered by model, operation or status, for an answer calls "
        "several models."
    )
    total_tokens: int = Field(description="Input and output tokens.")


class CompletionsResult(_ReadAndWritten):
    """The result for one group of one bucket."""

    object: Literal["organization.usage.completions.result"] = Field(
        default="organization.usage.completions.result", description="OpenAI's name of the object."
    )
    components: ReportComponents = Field(description="Prompt tokens by purpose.")


class EmbeddingsResult(_Counted):
    """The result for one group of one bucket."""

    object: Literal["organization.usage.embeddings.result"] = Field(
        default="organization.usage.embeddings.result", description="OpenAI's name of the object."
    )


class RerankResult(_Counted):
    """The result for one group of one bucket."""

    object: Literal["organization.usage.rerank.result"] = Field(
        default="organization.usage.rerank.result", description="Named like OpenAI's objects."
    )


class JudgeResult(_Counted):
    """The result for one group of one bucket."""

    object: Literal["organization.usage.judge.result"] = Field(
        default="organization.usage.judge.result", description="Named like OpenAI's objects."
    )


class CostsResult(_Grouped):
    """The result for one group of one bucket."""

    object: Literal["organization.costs.result"] = Field(
        default="organization.costs.result", description="OpenAI's name of the object."
    )
    amount: Money = Field(description="Cost; null when no call had a price.")
    quantity: int | None = Field(description="Tokens, when grouped by line item.")
    quantity_unit: Literal["tokens"] | None = Field(description="Unit of `quantity`.")
    num_unpriced: int | None = Field(
        description="Number of calls without a price; null when grouped by line item or document."
    )
    line_item: str | None = Field(
        default=None,
        description="Set when grouped by it: a model and a kind of tokens, or `adjustment`.",
        examples=["m-1, cached input"],
    )
    document_id: str | None = Field(
        default=None, description="The document; empty for costs of no document. Set when grouped by it."
    )


Result = TypeVar("Result")


class Bucket(ResponseBody, Generic[Result]):
    """One time bucket."""

    object: Literal["bucket"] = Field(default="bucket", description="Always `bucket`.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    start_local: str = Field(description="The start in the report's time zone.")
    results: list[Result] = Field(description="One result per group; empty without usage.")


class ReportPage(ResponseBody, Generic[Result]):
    """A page of buckets, oldest first."""

    object: Literal["page"] = Field(default="page", description="Always `page`.")
    data: list[Bucket[Result]] = Field(description="The buckets.")
    has_more: bool = Field(description="Whether another page follows.")
    next_page: str | None = Field(description="Pass as `page` to get the next page; null on the last.")
    as_of: int = Field(description="When the report was generated, Unix seconds.")
    final: bool = Field(description="Whether every bucket is final and will never change.")
    tz: str = Field(description="The report's time zone.", examples=["UTC"])


class DocumentResult(ResponseBody):
    """Usage and cost of one document."""

    object: Literal["footnote.usage.documents.result"] = Field(
        default="footnote.usage.documents.result", description="Always this."
    )
    document_id: str = Field(description="The document.")
    name: str = Field(description="Its file name, or `(deleted)`.")
    deleted: bool = Field(description="Whether it was deleted.")
    collection_id: str | None = Field(description="Its collection; null when it was deleted.")
    num_ingests: int = Field(description="Number of calls that embedded it.")
    ingest_tokens: int = Field(description="Embedded tokens.")
    ingest_cost: Money = Field(description="Cost of embedding it; null when no call had a price.")
    num_retrieved: int = Field(description="Number of calls that read passages of it for an answer.")
    context_tokens: int = Field(description="Tokens of these passages.")
    context_cost: Money = Field(
        description="Its share of their costs, by its share of the tokens read; null when no call had a price."
    )
    num_cited: int = Field(description="Number of complete answers that cite it; JSON answers cite nothing.")
    num_citations: int = Field(description="Number of footnotes that cite it.")
    cost: Money = Field(description="Sum of both costs, as far as known.")


class DocumentsPage(ResponseBody):
    """A page of documents, in the requested order."""

    object: Literal["page"] = Field(default="page", description="Always `page`.")
    data: list[DocumentResult] = Field(description="The documents.")
    has_more: bool = Field(description="Whether another page follows.")
    next_page: str | None = Field(description="Pass as `page` to get the next page; null on the last.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive; the same for all pages.")
    as_of: int = Field(description="When the report was generated, Unix seconds.")
    final: bool = Field(description="Whether the range is final, so that no number will change.")


class RebuildBody(RequestBody):
    """The rollups to rebuild."""

    start_time: int = Field(ge=0, le=LATEST, description="Unix seconds, inclusive.")
    end_time: int = Field(ge=0, le=LATEST, description="Unix seconds, exclusive; at most 31 days later.")
    tenant_id: str | None = Field(default=None, max_length=200, description="The tenant; null: the caller's.")


class RebuiltBody(ResponseBody):
    """The rollups that were rebuilt."""

    object: Literal["usage.rebuild"] = Field(default="usage.rebuild", description="Always `usage.rebuild`.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    days: int = Field(description="Number of days, in the reporting zone, that were rebuilt.")


class CallTotals(ResponseBody):
    """Usage of models that generate nothing, in one period."""

    num_model_requests: int = Field(description="Number of model calls.")
    input_tokens: int = Field(description="Input tokens.")


class OwnPeriod(ResponseBody):
    """Usage in one period, in four parts: each call counts in exactly one."""

    start_time: int = Field(description="Start, Unix seconds.")
    num_answers: int = Field(description="Number of questions that ended, however they were answered.")
    completions: CompletionsResult = Field(description="Generation of answers.")
    embeddings: CallTotals = Field(description="Embedding of queries and documents.")
    rerank: CallTotals = Field(description="Reranking.")
    judge: CallTotals = Field(description="Models that read passages to find, select or verify answers.")
    num_unpriced: int = Field(description="Number of calls, in all parts, whose model had no price.")
    cost: Money = Field(description="Cost of all parts; null when no call had a price.")


class OwnUsage(ResponseBody):
    """The usage of the caller's user."""

    object: Literal["usage"] = Field(default="usage", description="Always `usage`.")
    user_id: str = Field(description="The user.")
    today: OwnPeriod = Field(description="Since midnight.")
    month: OwnPeriod = Field(description="Since the first day of the month.")
    all_time: OwnPeriod = Field(description="Since the beginning.")
    budgets: list[OwnBudget] = Field(
        description="The budgets that the caller's calls count against, with the remainders."
    )
    as_of: int = Field(description="When the report was generated, Unix seconds.")
    tz: str = Field(description="The time zone of the periods.", examples=["UTC"])
