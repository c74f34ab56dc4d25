"""Bodies of the raw ledger."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import ResponseBody
from app.api.schemas.token_usage import Money
from app.api.schemas.usage import ReportComponents


class LineBody(ResponseBody):
    """A settled call, or an adjustment of one, whose counts are what it adds and may be negative."""

    object: Literal["usage_event"] = Field(default="usage_event", description="Always `usage_event`.")
    event_id: str = Field(description="The call; of an adjustment the one it is of.", examples=["req_01k9:1"])
    adjustment_id: str | None = Field(description="Set where the line is an adjustment.")
    request_id: str = Field(description="The request or ingestion job the call was made for.")
    operation: str = Field(description="What it paid for.", examples=["chat"])
    status: str = Field(description="How the call ended, or `adjustment`.", examples=["completed"])
    count_quality: str = Field(description="`exact`, or `checkpoint` where at least this much was generated.")
    accepted_at: str = Field(description="When the call was accepted: its prices are of then. RFC 3339 UTC.")
    settled_at: str = Field(description="When the line counted. RFC 3339 UTC.")
    settled_local: str = Field(description="The same in the asked time zone.")
    project_id: str | None = Field(description="The one collection asked; null for none or several.")
    user_id: str = Field(description="Whose use.")
    api_key_id: str = Field(description="The key that asked.")
    model: str = Field(description="The model.")
    tokenizer_revision: str = Field(description="What counted the tokens.")
    input_tokens: int = Field(description="Tokens read, cached ones included.")
    input_cached_tokens: int = Field(description="Of these, served from the KV cache.")
    output_tokens: int = Field(description="Tokens generated.")
    output_delivered_tokens: int = Field(description="Of these, taken by the reader.")
    max_output_tokens: int = Field(description="What was reserved.")
    components: ReportComponents = Field(description="The prompt by purpose.")
    cost: Money = Field(description="Null where there was no price.")
    price_ids: list[str] = Field(description="The prices noted with it.")
    first_token_us: int | None = Field(description="Microseconds to the first token.")
    total_us: int | None = Field(description="Microseconds in all.")
    reason: str | None = Field(description="Why an adjustment was made.")


class EventDocument(ResponseBody):
    """What a document put into a prompt."""

    document_id: str = Field(description="The document, which may be deleted since.")
    chunks: int = Field(description="Passages of it.")
    tokens: int = Field(description="Context tokens of it.")


class EventPrice(ResponseBody):
    """A price a call was costed with."""

    price_id: str = Field(description="The price.")
    meter: str = Field(description="What of the call it is for.", examples=["input"])
    cost_per_token: Money = Field(description="What a token costs.")


class WholeEventBody(LineBody):
    """A settled call with all that belongs to it."""

    documents: list[EventDocument] = Field(description="What it read; their tokens sum to the context.")
    prices: list[EventPrice] = Field(description="The prices it was costed with.")
    adjustments: list[LineBody] = Field(description="What was corrected since.")
    total_cost: Money = Field(description="The cost with its adjustments.")
