"""Stop the image build when another distribution owns one of our top-level names (docs/adr/0002).

pip lets two distributions write the same import package without a word; the later one wins, file by file.
"""

import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions

DISTRIBUTION = "footnote-rag"
NAMES = ("app", "ingestion", "retrieval", "generation", "migrations")


def clashes(distributions: Mapping[str, list[str]]) -> list[str]:
    """A sentence for each of our names that is not ours alone.

    Args:
        distributions: Import name to the distributions that ship it, as `packages_distributions()` returns.
    """
    owners = {name: sorted(set(distributions.get(name, []))) for name in NAMES}
    return [
        f"The import name {name!r} belongs to {' and '.join(found) or 'nobody'}, not to {DISTRIBUTION} alone."
        for name, found in owners.items()
        if found != [DISTRIBUTION]
    ]


if __name__ == "__main__":
    sys.exit("\n".join(clashes(packages_distributions())) or None)
