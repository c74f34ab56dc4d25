"""`python -m tests.mutations.ledger`: ten bugs that books have had, planted one by one; each must fail a test.

Every bug is an exact replacement in a copy of the checkout, and the tests that should notice run there (mutation
testing, by hand: DeMillo, Lipton, Sayward 1978). They must pass in the copy without it, and fail with it.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

_ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("app", "generation", "ingestion", "migrations", "retrieval", "tests", "pyproject.toml")
_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Bug:
    """`was` stands once in `file`; `becomes` is the bug. `tests` are run until the first of them fails."""

    name: str
    file: str
    was: str
    becomes: str
    tests: tuple[str, ...]


BUGS = (
    Bug(
        "settle late: the reader has the answer before its books are closed",
        "app/answering/calls.py",
        """        self._ledger.settle(
            self._event_id,
            Settlement(
                status=self._status(""",
        """        import threading

        later = lambda *what: threading.Timer(0.3, self._ledger.settle, what).start()  # noqa: E731
        later(
            self._event_id,
            Settlement(
                status=self._status(""",
        ("tests/app/answering/test_calls.py", "tests/app/api/test_cost.py"),
    ),
    Bug(
        "check, then count: a budget is looked at and taken from in two steps",
        "app/usage/budgets/budgets.py",
        """        taken = connection.execute(_TAKE, [claim.window | {"amount": claim.amount} for claim in claims])
        if taken.rowcount != len(claims):
""",
        """        found = [connection.execute(_READ, claim.window).one() for claim in claims]
        take = sa.update(budget_window).where(*_WINDOW).values(reserved=budget_window.c.reserved + _AMOUNT)
        connection.execute(take, [claim.window | {"amount": claim.amount} for claim in claims])
        if any(
            claim.row.enforcement == "hard" and sum(window) >= claim.row.limit_value
            for claim, window in zip(claims, found, strict=True)
        ):
""",
        ("tests/faults/test_budget_faults.py", "tests/app/usage/budgets/test_budgets.py"),
    ),
    Bug(
        "float money",
        "app/usage/ledger/pricing.py",
        "        total += count * by_meter[meter]\n",
        "        total = int(total + float(count) * by_meter[meter])\n",
        ("tests/app/usage/ledger/test_pricing.py",),
    ),
    Bug(
        "days of UTC in every zone",
        "app/usage/rollups/rollups.py",
        "day_start(entry.at, self._zone)",
        "entry.at - entry.at % 86_400_000_000",
        ("tests/app/usage/rollups/test_rollups.py",),
    ),
    Bug(
        "double settle: an ending counts twice",
        "app/usage/ledger/ledger.py",
        "        for observer in self._observers:\n            observer.settle_in(connection, entry)\n",
        "        for observer in 2 * self._observers:\n            observer.settle_in(connection, entry)\n",
        ("tests/app/usage/rollups/test_rollups.py",),
    ),
    Bug(
        "lost abort: who leaves pays nothing",
        "app/answering/calls.py",
        '        """Settle the row with what was really generated and delivered."""\n',
        "        if completion.finish_reason is FinishReason.CANCELLED:\n            return\n",
        ("tests/app/answering/test_calls.py", "tests/app/api/test_deadlines.py"),
    ),
    Bug(
        "component drift: the parts no longer sum to the prompt",
        "app/usage/ledger/ledger.py",
        '    return {"input_tokens": input_tokens, "tok_template": template} if template >= 0 else {}\n',
        '    return {"input_tokens": input_tokens}\n',
        ("tests/app/usage/ledger/test_ledger.py",),
    ),
    Bug(
        "null dimension: what belongs to no collection falls out of the sums",
        "app/usage/rollups/rollups.py",
        '            "project_id": entry.project_id,\n',
        '            "project_id": entry.project_id or None,\n',
        ("tests/app/usage/rollups/test_rollups.py",),
    ),
    Bug(
        "post-hoc price: a call costs what is in force when it ends",
        "app/usage/ledger/ledger.py",
        "            rates_of(connection, json.loads(row.price_ids)),\n",
        "            rates_at(connection, row.model_id, at=now),\n",
        ("tests/faults/test_price_faults.py",),
    ),
    Bug(
        "unbounded page: as many buckets as anybody asks for",
        "app/usage/rollups/buckets.py",
        "    if not 1 <= limit <= most:\n",
        "    if not 1 <= limit:\n",
        ("tests/app/usage/reports/test_reports.py::test_an_invalid_report_query_is_refused_by_its_parameter_name",),
    ),
)


def check(bugs: tuple[Bug, ...], console: Console) -> dict[str, str]:
    """By bug, `caught` or what went wrong instead."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in _COPIED:
            source = _ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        for bug in bugs:
            outcomes[bug.name] = _plant(copy, bug)
            console.print(f"{outcomes[bug.name]:10} {bug.name}")
    return outcomes


def _plant(copy: Path, bug: Bug) -> str:
    file = copy / bug.file
    good = file.read_text(encoding="utf-8")
    if good.count(bug.was) != 1:
        return "outdated"
    if _run(copy, bug.tests) != 0:
        return "not green"
    file.write_text(good.replace(bug.was, bug.becomes), encoding="utf-8")
    try:
        return "caught" if _run(copy, bug.tests) == 1 else "survived"
    finally:
        file.write_text(good, encoding="utf-8")


def _run(copy: Path, tests: tuple[str, ...]) -> int:
    """pytest's exit status: 0 all passed, 1 some failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]
    done = subprocess.run(
        command, cwd=copy, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_SECONDS, check=False
    )
    return done.returncode


def main() -> int:
    """Status 0 where every bug was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations.ledger", description=__doc__)
    parser.add_argument("--only", default="", help="a part of a bug's name")
    parser.add_argument("--out", type=Path, help="write the outcomes to this file")
    arguments = parser.parse_args()
    outcomes = check(tuple(bug for bug in BUGS if arguments.only in bug.name), Console())
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")
    return 0 if outcomes and set(outcomes.values()) == {"caught"} else 1


if __name__ == "__main__":
    raise SystemExit(main())
