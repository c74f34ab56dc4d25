"""Bodies of the raw usage ledger."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, create_model

from app.api.schemas.shape import ResponseBody
from app.api.schemas.token_usage import Money
from app.api.schemas.usage import ReportComponents
from app.db.tables.usage_columns import SHOWN, Form


def _fields() -> dict[str, Any]:
    """The fields of a line, for `create_model`: those of `SHOWN`, the parts of the input under one name."""
    fields: dict[str, Any] = {
        "object": (Literal["usage_event"], Field(default="usage_event", description="Always `usage_event`."))
    }
    for column in SHOWN:
        told = Field(description=column.says, examples=[column.example] if column.example else None)
        match column.form:
            case Form.TIME:
                fields[column.label] = str, told
                if column.localised:
                    local = "When it was settled, in the requested time zone."
                    fields[column.localised] = str, Field(description=local)
            case Form.MONEY:
                fields[column.label] = Money, told
            case Form.PRICES:
                fields[column.label] = list[str], told
            case Form.COUNT if column.part_of:
                fields["components"] = ReportComponents, Field(description="Prompt tokens by purpose.")
            case Form.COUNT:
                fields[column.label] = (int | None if column.empty is None else int), told
            case _ if column.name != "currency":  # told with the cost
                fields[column.label] = (str | None if column.optional else str), told
    return fields


if TYPE_CHECKING:

    class LineBody(ResponseBody):
        """A settled call, or an adjustment of one, whose numbers are differences and may be negative."""

else:
    LineBody = create_model(
        "LineBody",
        __base__=ResponseBody,
        __module__=__name__,
        __doc__="A settled call, or an adjustment of one, whose numbers are differences and may be negative.",
        **_fields(),
    )


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
