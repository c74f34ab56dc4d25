"""`python -m tests.mutations.ledger`: ten bugs that books have had, planted one by one; each must fail a test."""

from tests.mutations.planting import Bug, main

BUGS = (
    Bug(
        "settle late: the reader has the answer before its books are closed",
        "app/answering/metering/settler.py",
        """            self._ledger.settle(
                self._event_id,
                Settlement(
                    status=self._status(""",
        """            import threading

            later = lambda *what: threading.Timer(0.3, self._ledger.settle, what).start()  # noqa: E731
            later(
                self._event_id,
                Settlement(
                    status=self._status(""",
        ("tests/app/answering/metering/test_meter.py", "tests/app/api/test_cost.py"),
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
        "app/answering/metering/settler.py",
        '        """Settle the row with the tokens that were generated and delivered."""\n',
        "        if completion.finish_reason is FinishReason.CANCELLED:\n            return\n",
        ("tests/app/answering/metering/test_meter.py", "tests/app/api/test_deadlines.py"),
    ),
    Bug(
        "component drift: the parts no longer sum to the prompt",
        "app/usage/ledger/ledger.py",
        '    return counts._replace(**{name: getattr(read, name) for name in ("input_tokens", *PARTS)})\n',
        "    return counts._replace(input_tokens=input_tokens)\n",
        ("tests/app/usage/ledger/test_ledger.py",),
    ),
    Bug(
        "share drift: the documents' shares no longer sum to the context that a server counted",
        "app/usage/ledger/ledger.py",
        "            scale_shares(connection, event_id, counts.tok_context)\n",
        "            pass\n",
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


if __name__ == "__main__":
    raise SystemExit(main(BUGS, module="tests.mutations.ledger", description=__doc__))
