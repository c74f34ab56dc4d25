"""What was checked and what was measured, line by line on the screen, and the verdict."""

import json
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

console = Console(width=120, highlight=False)


@dataclass(frozen=True)
class Speed:
    """One measured row.

    Attributes:
        what: Was done.
        ms: Milliseconds, of a step where it decodes.
        tokens_s: Tokens a second, all rows together.
        limit_ms: What the device's memory, or its arithmetic, needs for the same at least; None where nothing is known.
    """

    what: str
    ms: float
    tokens_s: float
    limit_ms: float | None = None

    @property
    def share(self) -> float | None:
        """Of the limit."""
        return None if self.limit_ms is None else self.limit_ms / self.ms


@dataclass
class Checklist:
    """Checks that passed and failed, figures, and facts of the machine."""

    facts: dict[str, Any] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    speeds: list[Speed] = field(default_factory=list)

    def check(self, what: str, good: bool, note: str = "") -> None:
        """Print and keep whether `what` is so."""
        (self.passed if good else self.failed).append(what)
        console.print(f"{'PASS' if good else 'FAIL'}  {what}  {note}".rstrip(), markup=False)

    def say(self, what: str) -> None:
        """Print what is neither good nor bad."""
        console.print(f"      {what}", markup=False)

    def measured(self, speed: Speed) -> None:
        """Print and keep a row."""
        self.speeds.append(speed)
        share = "" if speed.share is None else f", {speed.share:.2f} of the limit"
        self.say(f"{speed.what}: {speed.ms:.2f} ms, {speed.tokens_s:,.0f} tokens/s{share}")

    def part(self, what: str, work: Callable[[], object]) -> None:
        """Carry a part out. One that breaks has failed, and the next may say why."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever broke, the check has failed
            console.print(traceback.format_exc(), markup=False)
            self.check(what, False, f"{type(error).__name__}: {error}")

    def conclude(self, out: Path | None) -> int:
        """Print the table and the verdict, write both to `out`, and return the process's exit status."""
        table = Table("what", "ms", "tokens/s", "limit, ms", "share of the limit")
        for row in self.speeds:
            limits = ("", "") if row.limit_ms is None else (f"{row.limit_ms:.2f}", f"{row.share:.2f}")
            table.add_row(row.what, f"{row.ms:.2f}", f"{row.tokens_s:,.0f}", *limits)
        console.print(table)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(asdict(self), indent=2) + "\n")
        good = bool(self.passed) and not self.failed
        console.print(
            "ALL PASSED" if good else f"FAILED: {'; '.join(self.failed) or 'nothing was checked'}", markup=False
        )
        return 0 if good else 1
