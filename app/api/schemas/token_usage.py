"""Bodies of token usage and cost."""

from pydantic import Field

from app.answering.answer import TokenUsage
from app.api.schemas.shape import ResponseBody
from app.usage.ledger.events import Bill
from app.usage.rollups.sums import decimal


class PromptTokensDetails(ResponseBody):
    """OpenAI's breakdown of the prompt tokens."""

    cached_tokens: int = Field(description="Prompt tokens served from the KV cache.", examples=[0])


class ComponentsBody(ResponseBody):
    """Prompt tokens by purpose; the sum is `prompt_tokens`."""

    template: int = Field(description="The chat template and labels.", examples=[24])
    system: int = Field(description="Instructions.", examples=[60])
    history: int = Field(description="Earlier turns.", examples=[0])
    question: int = Field(description="The question.", examples=[17])
    context: int = Field(description="The sources.", examples=[2090])


class AuxiliaryBody(ResponseBody):
    """An auxiliary model call of the request."""

    purpose: str = Field(
        description="`embed_query`, `extract`, `locate`, `rerank`, `rewrite`, `summarise` or `verify`.",
        examples=["embed_query"],
    )
    tokens: int = Field(description="Tokens read and, for `rewrite` and `summarise`, also generated.", examples=[12])


class Money(ResponseBody):
    """An amount of money."""

    value: str | None = Field(description="Decimal string; null while the model has no price.", examples=[None])
    currency: str = Field(default="usd", description="ISO 4217, lower case.", examples=["usd"])


class UsageBody(ResponseBody):
    """Token usage and cost; equal to the ledger's rows of this request."""

    prompt_tokens: int = Field(description="Prompt tokens.", examples=[2191])
    completion_tokens: int = Field(description="Generated tokens.", examples=[41])
    total_tokens: int = Field(description="Sum of prompt and completion tokens.", examples=[2232])
    prompt_tokens_details: PromptTokensDetails = Field(description="OpenAI's breakdown of the prompt tokens.")
    components: ComponentsBody = Field(description="Prompt tokens by purpose.")
    by_document: dict[str, int] = Field(description="Context tokens by document; they sum to `components.context`.")
    auxiliary: list[AuxiliaryBody] = Field(description="Auxiliary model calls.")
    cost: Money = Field(description="Cost of the calls that have a price.")
    num_unpriced: int = Field(
        description="Number of model calls without a price, which `cost` does not include.", examples=[0]
    )

    @classmethod
    def of(cls, usage: TokenUsage) -> "UsageBody":
        """The body for an answer's usage."""
        parts, bill = usage.components, usage.bill
        auxiliary = []
        if usage.embedding_tokens:
            auxiliary.append(AuxiliaryBody(purpose="embed_query", tokens=usage.embedding_tokens))
        if usage.extract_tokens:
            auxiliary.append(AuxiliaryBody(purpose="extract", tokens=usage.extract_tokens))
        if usage.locate_tokens:
            auxiliary.append(AuxiliaryBody(purpose="locate", tokens=usage.locate_tokens))
        if usage.rerank_tokens:
            auxiliary.append(AuxiliaryBody(purpose="rerank", tokens=usage.rerank_tokens))
        if usage.rewrite_tokens:
            auxiliary.append(AuxiliaryBody(purpose="rewrite", tokens=usage.rewrite_tokens))
        if usage.summary_tokens:
            auxiliary.append(AuxiliaryBody(purpose="summarise", tokens=usage.summary_tokens))
        if usage.verify_tokens:
            auxiliary.append(AuxiliaryBody(purpose="verify", tokens=usage.verify_tokens))
        return cls(
            prompt_tokens=parts.total,
            completion_tokens=usage.completion_tokens,
            total_tokens=parts.total + usage.completion_tokens,
            prompt_tokens_details=PromptTokensDetails(cached_tokens=usage.cached_tokens),
            components=ComponentsBody(
                template=parts.template,
                system=parts.system,
                history=parts.history,
                question=parts.question,
                context=parts.context,
            ),
            by_document=dict(usage.by_document),
            auxiliary=auxiliary,
            cost=Money(value=_amount(bill), currency=bill.currency) if bill else Money(value=None),
            num_unpriced=bill.unpriced if bill else 0,
        )


def _amount(bill: Bill) -> str | None:
    return None if bill.cost_pico is None else decimal(bill.cost_pico)
