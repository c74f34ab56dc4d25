"""One schema of usage: every column of a settled call, and of an adjustment of one, is declared here.

A field of `Measures` or `LedgerLine` is declared once, and its annotation says everything else: where it is stored,
what exports and the API call it, and what it means. Tables, selects, sums, exports and bodies are derived from these
two classes; no other module writes down a list of them or their order.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from operator import add
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import sqlalchemy as sa

from app.types import Components


class Form(StrEnum):
    """How a value is written in exports and in the API."""

    COUNT = "count"  # a number, or nothing
    IDENTIFIER = "identifier"  # a text that hardly two lines have alike
    TEXT = "text"  # a text that many lines have
    TIME = "time"  # Unix microseconds, shown as RFC 3339
    MONEY = "money"  # pico-units, or nothing where a call has no price
    PRICES = "prices"  # JSON, a list of ids


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageColumn:
    """What is known of one field.

    Attributes:
        says: What it means, for the API's schema.
        form: How it is written.
        stored: Its column of `usage_event`, if that has another name; "" where calls have none.
        of_adjustment: Whether an adjustment has a column of its own, shows that of its call, or has neither.
        adjusted: Its column of `usage_adjustment`, if that has another name.
        empty: The value where `usage_event`, or an adjustment, has none.
        shown: Its name in exports and in the API, if that is another one.
        part_of: The count that it is a part of: together the parts are the whole of a generator's call.
        optional: Whether the API shows null for an empty text.
        localised: Where the API and exports show a time a second time, in a time zone, the name of that column.
        example: A value, for the API's schema.
        name: The name of the field.
    """

    says: str
    form: Form
    stored: str | None = None
    of_adjustment: Literal["own", "call", "none"] = "call"
    adjusted: str | None = None
    empty: str | int | None = ""
    shown: str | None = None
    part_of: str | None = None
    optional: bool = False
    localised: str | None = None
    example: str | None = None
    name: str = field(default="", compare=False)

    @property
    def column(self) -> str:
        """Its column of `usage_event`; "" where calls have none."""
        return self.name if self.stored is None else self.stored

    @property
    def own_column(self) -> str:
        """Its column of `usage_adjustment`."""
        return self.adjusted or self.name

    @property
    def label(self) -> str:
        """Its name in the API: of a part, without the names of the others."""
        return self.shown or self.name

    @property
    def heading(self) -> str:
        """Its name in a table, where parts do not stand under a common name."""
        return self.label if self.part_of is None else f"component_{self.label}"


def _count(says: str, *, part: str | None = None) -> UsageColumn:
    """A count of tokens; `part` is the API's name of a part of the input."""
    part_of = None if part is None else "input_tokens"
    return UsageColumn(says=says, form=Form.COUNT, of_adjustment="own", empty=0, shown=part, part_of=part_of)


class Measures(NamedTuple):
    """The token counts of a call, their sum over several, or a change of them, which may be negative.

    Example:
        >>> Measures(input_tokens=12, tok_question=12).plus(Measures(output_tokens=3)).output_tokens
        3
    """

    input_tokens: Annotated[int, _count("Input tokens, cached ones included.")] = 0
    input_cached_tokens: Annotated[int, _count("Input tokens served from the KV cache.")] = 0
    output_tokens: Annotated[int, _count("Generated tokens, also after the client disconnected.")] = 0
    output_delivered_tokens: Annotated[int, _count("Generated tokens that the client received.")] = 0
    tok_system: Annotated[int, _count("Instructions.", part="system")] = 0
    tok_history: Annotated[int, _count("Earlier turns.", part="history")] = 0
    tok_context: Annotated[int, _count("Sources.", part="context")] = 0
    tok_question: Annotated[int, _count("Questions.", part="question")] = 0
    tok_template: Annotated[int, _count("Chat templates and labels.", part="template")] = 0

    @classmethod
    def of(cls, row: Mapping[Any, Any]) -> "Measures":
        """The counts in a row with a column for each."""
        return cls._make(int(row[name]) for name in cls._fields)

    @classmethod
    def of_row(cls, row: sa.Row[Any]) -> "Measures":
        """As `of`, for a row whose columns are attributes."""
        return cls._make(getattr(row, name) for name in cls._fields)

    @classmethod
    def read(cls, input_tokens: int, components: Components) -> "Measures":
        """The counts of an input with these parts."""
        return cls(input_tokens=input_tokens, **{name: getattr(components, part) for name, part in PARTS.items()})

    def plus(self, other: "Measures") -> "Measures":
        """The sum, count by count."""
        return Measures._make(map(add, self, other))

    @property
    def components(self) -> Components:
        """The parts of the input."""
        return Components(**self.parts)

    @property
    def input_uncached_tokens(self) -> int:
        """The input tokens that were computed."""
        return self.input_tokens - self.input_cached_tokens

    @property
    def total_tokens(self) -> int:
        """The tokens that were read and written."""
        return self.input_tokens + self.output_tokens

    @property
    def counted(self) -> dict[str, int]:
        """The counts of `COUNTED`, by name."""
        return {name: getattr(self, name) for name in COUNTED}

    @property
    def parts(self) -> dict[str, int]:
        """The parts of the input by their names in the API."""
        return {part: getattr(self, name) for name, part in PARTS.items()}


class LedgerLine(NamedTuple):
    """A settled call, or an adjustment of one; the counts of an adjustment are changes and may be negative.

    Times are Unix microseconds, `at` is when the line was settled or made. Money is pico-units, None if a call has no
    price; `price_ids` is JSON. A call has no `adjustment_id` and `reason`; an adjustment has the other texts of its
    call. The order is that of exports, in which the parts of a count stand behind all counts.
    """

    at: Annotated[
        int,
        UsageColumn(
            says="When it was settled, RFC 3339 UTC.",
            form=Form.TIME,
            stored="settled_at",
            of_adjustment="own",
            adjusted="created_at",
            shown="settled_at",
            localised="settled_local",
        ),
    ]
    accepted_at: Annotated[
        int,
        UsageColumn(says="When the call was accepted, which decides its prices. RFC 3339 UTC.", form=Form.TIME),
    ]
    event_id: Annotated[
        str,
        UsageColumn(
            says="The call, or the call that was adjusted.",
            form=Form.IDENTIFIER,
            of_adjustment="own",
            example="req_01k9:1",
        ),
    ]
    adjustment_id: Annotated[
        str,
        UsageColumn(
            says="Id of the adjustment; null for a call.",
            form=Form.IDENTIFIER,
            stored="",
            of_adjustment="own",
            optional=True,
        ),
    ]
    request_id: Annotated[str, UsageColumn(says="The request or ingestion job of the call.", form=Form.IDENTIFIER)]
    operation: Annotated[str, UsageColumn(says="The operation.", form=Form.TEXT, example="chat")]
    status: Annotated[
        str,
        UsageColumn(
            says="How the call ended, or `adjustment`.",
            form=Form.TEXT,
            of_adjustment="none",
            empty="adjustment",
            example="completed",
        ),
    ]
    count_quality: Annotated[
        str,
        UsageColumn(
            says="`exact`, or `checkpoint`: a lower bound, from the last checkpoint before a crash.", form=Form.TEXT
        ),
    ]
    project_id: Annotated[
        str,
        UsageColumn(says="The collection, of requests to exactly one; else null.", form=Form.TEXT, optional=True),
    ]
    user_id: Annotated[str, UsageColumn(says="The user.", form=Form.TEXT)]
    api_key_id: Annotated[str, UsageColumn(says="The key.", form=Form.TEXT)]
    model: Annotated[str, UsageColumn(says="The model.", form=Form.TEXT, stored="model_id")]
    tokenizer_revision: Annotated[
        str,
        UsageColumn(says="Revision of the tokenizer that counted the tokens.", form=Form.TEXT, stored="tokenizer_rev"),
    ]
    measures: Measures
    max_output_tokens: Annotated[
        int,
        UsageColumn(says="Output tokens that were reserved.", form=Form.COUNT, of_adjustment="none", empty=0),
    ]
    cost_pico: Annotated[
        int | None,
        UsageColumn(says="Cost; null without a price.", form=Form.MONEY, of_adjustment="own", shown="cost"),
    ]
    currency: Annotated[str, UsageColumn(says="The currency of the cost.", form=Form.TEXT, of_adjustment="own")]
    price_ids: Annotated[
        str,
        UsageColumn(says="Ids of the prices that it was costed with.", form=Form.PRICES, of_adjustment="own"),
    ]
    first_token_us: Annotated[
        int | None,
        UsageColumn(
            says="Time to the first token in microseconds.",
            form=Form.COUNT,
            stored="ttft_us",
            of_adjustment="none",
            empty=None,
        ),
    ]
    total_us: Annotated[
        int | None,
        UsageColumn(says="Total duration in microseconds.", form=Form.COUNT, of_adjustment="none", empty=None),
    ]
    reason: Annotated[
        str,
        UsageColumn(says="Reason of an adjustment.", form=Form.TEXT, stored="", of_adjustment="own", optional=True),
    ]


def _declared(of: type[Measures | LedgerLine]) -> Mapping[str, UsageColumn]:
    """The columns that a class declares, by field."""
    hints = get_type_hints(of, include_extras=True)
    annotated = {name: hints[name] for name in of._fields if hasattr(hints[name], "__metadata__")}
    return MappingProxyType({name: replace(hint.__metadata__[0], name=name) for name, hint in annotated.items()})


MEASURES = _declared(Measures)
"""The columns of counts, by field."""

LINE = _declared(LedgerLine)
"""The other columns of a line, by field."""

PARTS = MappingProxyType({name: column.label for name, column in MEASURES.items() if column.part_of})
"""The parts of a generator's input, by field, with their names in the API."""


def _counted() -> Iterator[tuple[str, str]]:
    for column in MEASURES.values():
        if not column.part_of:
            yield column.name, column.says
        if column.name == "input_cached_tokens":
            yield "input_uncached_tokens", "Input tokens that were computed."


COUNTED = MappingProxyType(dict(_counted()))
"""The counts of reports without parts, and what they mean; behind what came from the cache stands what did not."""

DIMENSIONS = ("project_id", "user_id", "api_key_id", "model", "operation", "status")
"""The dimensions to group and filter by, under the names of the reports: whose calls, then which."""

STORED_DIMENSIONS = tuple(LINE[name].column for name in DIMENSIONS)
"""`DIMENSIONS`, under the names of the tables."""


def _shown() -> tuple[UsageColumn, ...]:
    flat = (column for name in LedgerLine._fields for column in ((LINE[name],) if name in LINE else MEASURES.values()))
    counts_together = groupby(flat, key=lambda column: column.form is Form.COUNT)
    return tuple(column for _, some in counts_together for column in sorted(some, key=lambda one: bool(one.part_of)))


SHOWN = _shown()
"""All columns in the order of exports."""
