"""Bodies of the raw usage ledger."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import ResponseBody
from app.api.schemas.token_usage import Money
from app.api.schemas.usage import ReportComponents


class LineBody(ResponseBody):
    """A settled call, or an adjustment of one, whose numbers are differences and may be negative."""

    object: Literal["usage_event"] = Field(default="usage_event", description="Always `usage_event`.")
    event_id: str = Field(description="The call, or the call that was adjusted.", examples=["req_01k9:1"])
    adjustment_id: str | None = Field(description="Id of the adjustment; null for a call.")
    request_id: str = Field(description="The request or ingestion job of the call.")
    operation: str = Field(description="The operation.", examples=["chat"])
    status: str = Field(description="How the call ended, or `adjustment`.", examples=["completed"])
    count_quality: str = Field(
        description="`exact`, or `checkpoint`: a lower bound, from the last checkpoint before a crash."
    )
    accepted_at: str = Field(description="When the call was accepted, which decides its prices. RFC 3339 UTC.")
    settled_at: str = Field(description="When it was settled, RFC 3339 UTC.")
    settled_local: str = Field(description="When it was settled, in the requested time zone.")
    project_id: str | None = Field(description="The collection, of requests to exactly one; else null.")
    user_id: str = Field(description="The user.")
    api_key_id: str = Field(description="The key.")
    model: str = Field(description="The model.")
    tokenizer_revision: str = Field(description="Revision of the tokenizer that counted the tokens.")
    input_tokens: int = Field(description="Input tokens, cached ones included.")
    input_cached_tokens: int = Field(description="Input tokens served from the KV cache.")
    output_tokens: int = Field(description="Generated tokens.")
    output_delivered_tokens: int = Field(description="Generated tokens that the client received.")
    max_output_tokens: int = Field(description="Output tokens that were reserved.")
    components: ReportComponents = Field(description="Prompt tokens by purpose.")
    cost: Money = Field(description="Cost; null without a price.")
    price_ids: list[str] = Field(description="Ids of the prices that it was costed with.")
    first_token_us: int | None = Field(description="Time to the first token in microseconds.")
    total_us: int | None = Field(description="Total duration in microseconds.")
    reason: str | None = Field(description="Reason of an adjustment.")


class EventDocument(ResponseBody):
    """The share of a document in a prompt."""

    document_id: str = Field(description="The document, which may have been deleted.")
    chunks: int = Field(description="Number of its passages in the prompt.")
    tokens: int = Field(description="Tokens of these passages.")


class EventPrice(ResponseBody):
    """A price that a call was costed with."""

    price_id: str = Field(description="The price.")
    meter: str = Field(description="The kind of tokens.", examples=["input"])
    cost_per_token: Money = Field(description="Price of one token.")


class WholeEventBody(LineBody):
    """A settled call with its documents, prices and adjustments."""

    documents: list[EventDocument] = Field(
        description="Documents in the prompt; their tokens sum to the context tokens."
    )
    prices: list[EventPrice] = Field(description="The prices it was costed with.")
    adjustments: list[LineBody] = Field(description="Later adjustments.")
    total_cost: Money = Field(description="Cost including adjustments.")
