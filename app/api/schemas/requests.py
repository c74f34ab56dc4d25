"""Bodies of requests as the ledger knows them."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import ResponseBody
from app.api.schemas.token_usage import Money
from app.api.schemas.usage_events import LineBody
from app.db.answer_citations import AnswerResult


class LedgerRequestBody(ResponseBody):
    """A request that called a model, with what all its calls used and cost, later adjustments included."""

    object: Literal["request"] = Field(default="request", description="Always `request`.")
    id: str = Field(description="Its id, the `x-request-id` of its response.", examples=["req_01k9"])
    endpoint: str = Field(description="The kind of request.", examples=["ask"])
    created_at: int = Field(description="When it was accepted, in Unix seconds.", examples=[1785000000])
    user_id: str | None = Field(description="The user; null where the key names none.", examples=["ada"])
    api_key_id: str | None = Field(description="The key.", examples=["key_01k9"])
    project_id: str | None = Field(description="The collection, where it is of one alone.", examples=["col_01k9"])
    result: AnswerResult | None = Field(
        description="How a question ended; null for other requests, and while it is answered.", examples=["answered"]
    )
    reason: str | None = Field(description="Why it was not answered, or the error's class.", examples=[None])
    confirmed: bool | None = Field(description="Whether the answer is confirmed; null where nothing was to be cited.")
    seconds: float | None = Field(description="From the start of the search to the end.", examples=[0.41])
    conversation_id: str | None = Field(description="The conversation that keeps its answer.", examples=["conv_01k9"])
    question: str | None = Field(description="The question, where a conversation keeps it.", examples=["Who?"])
    num_model_requests: int = Field(description="Number of settled model calls.", examples=[3])
    num_unsettled: int = Field(description="Number of calls that run, or were cut off and are not settled yet.")
    input_tokens: int = Field(description="Tokens that the calls read.", examples=[5385])
    output_tokens: int = Field(description="Tokens that they wrote.", examples=[41])
    total_tokens: int = Field(description="Sum of both.", examples=[5426])
    cost: Money = Field(description="Cost of the calls that have a price; null where none has.")


class WholeRequestBody(LedgerRequestBody):
    """A request with each of its calls and adjustments, oldest first."""

    calls: list[LineBody] = Field(description="Settled calls and adjustments, as the ledger has them.")
