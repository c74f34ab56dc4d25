"""Bodies of prices and of re-rating."""

from typing import Literal

from pydantic import Field

from app.api.schemas.bounds import Id
from app.api.schemas.shape import RequestBody, ResponseBody
from app.api.schemas.token_usage import Money
from app.usage.ledger.prices import Price, per_million
from app.usage.ledger.rerating import ModelRerating, Rerating
from app.usage.rollups.sums import decimal

LATEST_S = 253_402_300_800
"""The year 10000, in Unix seconds."""


class NewPrice(RequestBody):
    """A price to add."""

    model: str = Field(
        min_length=1, max_length=200, description="The model, by its name in reports.", examples=["all-MiniLM-L6-v2"]
    )
    meter: Literal["input", "cached_input", "output", "embedding"] = Field(
        description="The kind of tokens. Cached input without its own price costs as much as input."
    )
    price_per_million: str = Field(
        max_length=32,
        description='Price of a million tokens: a decimal string from "0" to "1000000" with at most six decimals.',
        examples=["0.15"],
    )
    effective_from: float | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=LATEST_S,
        description="Start of the price, Unix seconds; null: now. In the past only for times without a price.",
        examples=[None],
    )
    source: str = Field(
        default="",
        max_length=500,
        description="Origin of the figure, for your own records.",
        examples=["contract 2026"],
    )


class PriceBody(ResponseBody):
    """A price of one model and meter."""

    id: str = Field(description="The price's id, which ledger rows refer to.", examples=["price_01k9"])
    object: Literal["price"] = Field(default="price", description="Always `price`.")
    model: str = Field(description="The model.")
    meter: str = Field(description="input, cached_input, output or embedding.")
    price_per_million: str = Field(description="Price of a million tokens, with six decimals.", examples=["0.150000"])
    currency: str = Field(description="ISO 4217, lower case.", examples=["usd"])
    effective_from: float = Field(description="Start, Unix seconds, inclusive.")
    effective_to: float | None = Field(description="End, Unix seconds, exclusive; null: no end yet.")
    source: str = Field(description="Origin of the figure, for your own records.")
    created_by: str = Field(description="The user who entered it.")
    created_at: float = Field(description="When it was entered, Unix seconds.")

    @classmethod
    def of(cls, price: Price) -> "PriceBody":
        """The body for a price."""
        return cls(
            id=price.price_id,
            model=price.model,
            meter=price.meter,
            price_per_million=per_million(price.pico_per_token),
            currency=price.currency,
            effective_from=price.effective_from / 1_000_000,
            effective_to=None if price.effective_to is None else price.effective_to / 1_000_000,
            source=price.source,
            created_by=price.created_by,
            created_at=price.created_at / 1_000_000,
        )


class NewRerating(RequestBody):
    """The calls to re-rate."""

    start_time: int = Field(ge=0, le=LATEST_S, description="Start of the settlement times, Unix seconds, inclusive.")
    end_time: int = Field(ge=0, le=LATEST_S, description="End of the settlement times, Unix seconds, exclusive.")
    models: list[Id] | None = Field(default=None, max_length=100, description="Only these models; null: all.")
    tenant_id: str | None = Field(default=None, max_length=200, description="The tenant; null: the caller's.")
    reason: str = Field(min_length=1, max_length=500, description="Reason, stored with every adjustment.")
    dry_run: bool = Field(default=True, strict=True, description="Only report what would change; nothing is written.")


class ModelReratingBody(ResponseBody):
    """The result of a re-rating for one model."""

    model: str = Field(description="The model.")
    num_calls: int = Field(description="Number of settled calls checked.")
    num_adjusted: int = Field(description="Number of calls whose cost changes.")
    num_newly_priced: int = Field(description="Of these, calls that had no price before.")
    num_unpriced: int = Field(description="Number of calls that still have no price.")
    difference: Money = Field(description="Sum of the adjustments; may be negative.")


class ReratingBody(ResponseBody):
    """The result of a re-rating, or of its dry run."""

    id: str = Field(description="The run's id, also in the audit log.", examples=["rerate_01k9"])
    object: Literal["rerating"] = Field(default="rerating", description="Always `rerating`.")
    dry_run: bool = Field(description="Whether nothing was written.")
    start_time: int = Field(description="Unix seconds, inclusive.")
    end_time: int = Field(description="Unix seconds, exclusive.")
    num_calls: int = Field(description="Number of settled calls checked.")
    num_adjusted: int = Field(description="Number of calls whose cost changes.")
    difference: Money = Field(description="Sum of the adjustments; may be negative.")
    models: list[ModelReratingBody] = Field(description="The results by model.")

    @classmethod
    def of(cls, rerating: Rerating, *, currency: str) -> "ReratingBody":
        """The body for a run."""

        def body_of(model: ModelRerating) -> ModelReratingBody:
            return ModelReratingBody(
                model=model.model,
                num_calls=model.calls,
                num_adjusted=model.adjusted,
                num_newly_priced=model.newly_priced,
                num_unpriced=model.unpriced,
                difference=Money(value=decimal(model.difference_pico), currency=currency),
            )

        total = sum(model.difference_pico for model in rerating.models)
        return cls(
            id=rerating.rerating_id,
            dry_run=rerating.dry_run,
            start_time=rerating.start // 1_000_000,
            end_time=rerating.end // 1_000_000,
            num_calls=sum(model.calls for model in rerating.models),
            num_adjusted=sum(model.adjusted for model in rerating.models),
            difference=Money(value=decimal(total), currency=currency),
            models=[body_of(model) for model in rerating.models],
        )
