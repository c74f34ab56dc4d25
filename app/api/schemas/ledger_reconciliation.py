"""Bodies of the ledger's reconciliation."""

from typing import Literal

from pydantic import Field

from app.api.schemas.shape import ResponseBody
from app.usage.reconciliation.check import Check
from app.usage.reconciliation.reconciliation import Reconciliation


class CheckBody(ResponseBody):
    """One comparison."""

    name: str = Field(description="What was compared.", examples=["engine_decode"])
    ok: bool = Field(description="Whether both sides agree, or nothing could be compared.")
    expected: int | None = Field(description="What one side says; null where nothing was compared.", examples=[4711])
    found: int | None = Field(description="What the ledger, or its sums, say.", examples=[4711])
    detail: str = Field(description="What it is about, or why nothing was compared.")

    @classmethod
    def of(cls, check: Check) -> "CheckBody":
        """The body for a check."""
        return cls(name=check.name, ok=check.ok, expected=check.expected, found=check.found, detail=check.detail)


class ReconciliationBody(ResponseBody):
    """The ledger against the engine's counters, its own sums and the budgets, over all tenants."""

    object: Literal["reconciliation"] = Field(default="reconciliation", description="Always `reconciliation`.")
    ok: bool = Field(description="Whether everything agrees.")
    as_of: int = Field(description="When it was compared, in Unix seconds.", examples=[1763640000])
    checks: list[CheckBody] = Field(description="Each comparison; those with the engine once a process and model.")

    @classmethod
    def of(cls, found: Reconciliation) -> "ReconciliationBody":
        """The body for a look."""
        return cls(ok=found.ok, as_of=found.as_of, checks=[CheckBody.of(check) for check in found.checks])
