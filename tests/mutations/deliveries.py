"""`python -m tests.mutations.deliveries`: bugs of deliveries by several processes, planted; each must fail a test."""

from tests.mutations.planting import Bug, main

_DELIVERED = ("tests/app/usage/test_shared_deliveries.py",)
_DELIVERIES = "app/db/deliveries.py"

BUGS = (
    Bug(
        "real processes: a delivery is taken without a look at who has it",
        _DELIVERIES,
        " or connection.execute(free).first() is None:\n",
        ":\n",
        ("tests/scale/test_deliveries.py",),
    ),
    Bug(
        "an event of a watched question is posted without being taken",
        "app/watches/runner.py",
        "if self._deliveries.take(waiting):\n",
        "if waiting:\n",
        _DELIVERED,
    ),
    Bug(
        "a delivery is taken without a lock",
        _DELIVERIES,
        ".with_for_update(skip_locked=True)\n",
        "\n",
        _DELIVERED,
    ),
    Bug(
        "a process that is stopped while it takes a delivery holds up the others",
        _DELIVERIES,
        ".with_for_update(skip_locked=True)\n",
        ".with_for_update()\n",
        _DELIVERED,
    ),
    Bug(
        "the dead keep the deliveries that they had taken",
        _DELIVERIES,
        "holder == self._claimant, not_living(holder))\n",
        "holder == self._claimant)\n",
        _DELIVERED,
    ),
    Bug(
        "a process keeps from itself what it could not note",
        _DELIVERIES,
        "sa.or_(holder.is_(None), holder == self._claimant, ",
        "sa.or_(holder.is_(None), ",
        _DELIVERED,
    ),
    Bug(
        "a process that was buried takes deliveries",
        _DELIVERIES,
        "not may_claim(self._claimant)(connection) or ",
        "",
        _DELIVERED,
    ),
    Bug(
        "a process that was buried writes what came of a delivery",
        _DELIVERIES,
        ".where(*which, mine)",
        ".where(*which)",
        _DELIVERED,
    ),
)


if __name__ == "__main__":
    raise SystemExit(main(BUGS, module="tests.mutations.deliveries", description=__doc__))
