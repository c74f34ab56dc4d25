"""The planted bugs of tests/mutations still fit the code: each replaces one place, and its tests exist."""

from pathlib import Path

import pytest

from tests.mutations import deliveries, jobs, ledger, presence, security, stores, tables
from tests.mutations.planting import Bug

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "bug",
    [*deliveries.BUGS, *jobs.BUGS, *ledger.BUGS, *presence.BUGS, *security.BUGS, *stores.BUGS, *tables.BUGS],
    ids=lambda bug: bug.name,
)
def test_a_planted_bug_fits_the_code(bug: Bug) -> None:
    source = (_ROOT / bug.file).read_text(encoding="utf-8")

    assert source.count(bug.was) == 1
    compile(source.replace(bug.was, bug.becomes), bug.file, "exec")
    for test in bug.tests:
        file, _, name = test.partition("::")
        assert (_ROOT / file).exists()
        assert f"def {name}" in (_ROOT / file).read_text(encoding="utf-8") if name else True
