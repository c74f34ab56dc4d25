"""Bodies of token usage and cost."""

from pydantic import Field

from app.answering.metering.token_usage import ModelCall, Purpose, TokenUsage
from app.api.schemas.shape import ResponseBody
from app.usage.ledger.events import Bill
from app.usage.rollups.sums import decimal

_HELPERS = tuple(purpose for purpose in Purpose if purpose is not Purpose.ANSWER)
_READING = (Purpose.EXTRACT, Purpose.LOCATE, Purpose.COMPARE, Purpose.RERANK, Purpose.SUMMARISE)


class PromptTokensDetails(ResponseBody):
    """OpenAI's breakdown of the prompt tokens."""

    cached_tokens: int = Field(description="Prompt tokens served from the KV cache.", examples=[0])


class ComponentsBody(ResponseBody):
    """Tokens by purpose; the sum is `total_tokens`.

    `template` to `context` are the prompt of the language model that answers; all 0 where quotes answer.
    """

    template: int = Field(description="The chat template and labels of the prompt.", examples=[24])
    system: int = Field(description="Instructions in the prompt.", examples=[60])
    history: int = Field(description="Earlier turns in the prompt.", examples=[0])
    question: int = Field(description="The question in the prompt.", examples=[17])
    context: int = Field(description="The sources in the prompt.", examples=[2090])
    completion: int = Field(description="Tokens generated as the answer.", examples=[41])
    embedding: int = Field(
        description="Embedding the question to search for it, and the passages of documents that were sent with it.",
        examples=[12],
    )
    reading: int = Field(
        description="Reading, ranking and summarising passages, and choosing quotes from them.", examples=[3182]
    )
    rewriting: int = Field(description="Rewriting a follow-up question to stand alone.", examples=[0])
    verification: int = Field(description="Verifying what was generated.", examples=[0])


class AuxiliaryBody(ResponseBody):
    """The model calls for one purpose other than answering."""

    purpose: str = Field(
        description="`embed_query`, `embed_passages`, `extract`, `locate`, `compare`, `rerank`, `rewrite`, "
        "`summarise` or `verify`.",
        examples=["embed_query"],
    )
    tokens: int = Field(description="Tokens read and, for `rewrite` and `summarise`, also generated.", examples=[12])


class CallBody(ResponseBody):
    """One model call, equal to its row of the ledger."""

    purpose: str = Field(
        description="`answer`, or a purpose of `auxiliary`: `embed_query` embeds the question, `embed_passages` "
        "those of documents that were sent with it, `locate` reads passages for the words that answer, `extract` "
        "chooses quotes, `compare` compares the likeliest of them, `rerank` ranks passages.",
        examples=["locate"],
    )
    model: str = Field(
        description="The model that was called; empty in answers stored before it was recorded.",
        examples=["evidence-minilm-l6"],
    )
    prompt_tokens: int = Field(description="Tokens read.", examples=[2841])
    cached_tokens: int = Field(description="Those of them that were reused from the KV cache.", examples=[0])
    completion_tokens: int = Field(description="Tokens written.", examples=[0])
    planned: bool = Field(
        default=False,
        description="Whether a dry run only planned the call: it counts in the sums here and is on no ledger.",
        examples=[False],
    )

    @classmethod
    def of(cls, call: ModelCall) -> "CallBody":
        """The body for a call."""
        return cls(
            purpose=call.purpose,
            model=call.model,
            prompt_tokens=call.prompt_tokens,
            cached_tokens=call.cached_tokens,
            completion_tokens=call.completion_tokens,
            planned=call.planned,
        )


class Money(ResponseBody):
    """An amount of money."""

    value: str | None = Field(description="Decimal string; null while the model has no price.", examples=[None])
    currency: str = Field(default="usd", description="ISO 4217, lower case.", examples=["usd"])


class UsageBody(ResponseBody):
    """Token usage and cost of every model call for the answer; equal to the ledger's rows of this request."""

    prompt_tokens: int = Field(description="Tokens that all model calls read.", examples=[5385])
    completion_tokens: int = Field(description="Tokens that all model calls wrote; 0 for quotes.", examples=[41])
    total_tokens: int = Field(description="Sum of both.", examples=[5426])
    prompt_tokens_details: PromptTokensDetails = Field(description="OpenAI's breakdown of the prompt tokens.")
    components: ComponentsBody = Field(description="Tokens by purpose; they sum to `total_tokens`.")
    calls: list[CallBody] = Field(description="The model calls, in the order they were made.")
    by_document: dict[str, int] = Field(description="Context tokens by document; they sum to `components.context`.")
    auxiliary: list[AuxiliaryBody] = Field(description="Tokens of the calls other than `answer`, by purpose.")
    cost: Money = Field(description="Cost of the calls that have a price.")
    num_unpriced: int = Field(
        description="Number of model calls without a price, which `cost` does not include.", examples=[0]
    )

    @classmethod
    def of(cls, usage: TokenUsage) -> "UsageBody":
        """The body for an answer's usage."""
        parts, bill = usage.components, usage.bill
        helped = ((purpose, usage.tokens_for(purpose)) for purpose in _HELPERS)
        return cls(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            total_tokens=usage.total_tokens,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=usage.cached_tokens),
            components=ComponentsBody(
                template=parts.template,
                system=parts.system,
                history=parts.history,
                question=parts.question,
                context=parts.context,
                completion=usage.answer_tokens,
                embedding=usage.tokens_for(Purpose.EMBED_QUERY, Purpose.EMBED_PASSAGES),
                reading=usage.tokens_for(*_READING),
                rewriting=usage.tokens_for(Purpose.REWRITE),
                verification=usage.tokens_for(Purpose.VERIFY),
            ),
            calls=[CallBody.of(call) for call in usage.calls],
            by_document=dict(usage.by_document),
            auxiliary=[AuxiliaryBody(purpose=purpose, tokens=tokens) for purpose, tokens in helped if tokens],
            cost=Money(value=_amount(bill), currency=bill.currency) if bill else Money(value=None),
            num_unpriced=bill.unpriced if bill else 0,
        )


def _amount(bill: Bill) -> str | None:
    return None if bill.cost_pico is None else decimal(bill.cost_pico)
