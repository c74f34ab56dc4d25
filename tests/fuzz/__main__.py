"""`python -m tests.fuzz --requests 20000`: the contract and the grammars under fuzz, printed by route and by status.

Each round has an application of its own and another seed, until so many requests were sent. It ends with status 1
where a promise was broken; each comes with the curl line that breaks it again. Each round also tries the grammars of
`tests/fuzz/grammars`; a case of theirs that fails is kept in `tests/fuzz/seeds`, where `make test` finds it.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from app.telemetry.logs import configure_logging
from app.types import Role
from tests.fuzz.application import served
from tests.fuzz.campaign import PHASES, Campaign, run_campaign
from tests.fuzz.grammar_campaign import run_grammars
from tests.loop_watch import LONGEST_S


def main() -> None:
    """Run rounds, print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="send at least so many")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--examples", type=int, default=30, help="random requests an operation, and chains, a round")
    parser.add_argument("--role", type=Role, default=Role.ADMIN, choices=list(Role), help="of the key")
    parser.add_argument("--tenant", help="of the key; default: the administrator's")
    parser.add_argument("--phases", nargs="+", default=list(PHASES), choices=PHASES)
    parser.add_argument("--grammars", type=int, default=3, help="times the cases of a short run, a round; 0: none")
    parser.add_argument("--only", help="pattern of the paths that are called")
    chosen = parser.parse_args()
    configure_logging(level="error", json=True)
    total, began, seed = Campaign(), time.monotonic(), chosen.seed
    held, longest = 0, 0.0
    while total.requests < chosen.requests:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, served(Path(folder) / "data") as server:
            secret = server.key(chosen.role, tenant_id=chosen.tenant)
            found = Campaign()
            if chosen.grammars:  # first: the other requests change limits, keys and documents
                found.add(run_grammars(server.url, seed=seed, times=chosen.grammars))
            described = run_campaign(
                server.url,
                secret=secret,
                spared=server.ids_of(secret),
                seed=seed,
                examples=chosen.examples,
                phases=tuple(chosen.phases),
                only=chosen.only,
            )
            found.add(described)
            noted, longest_s = server.watch.noted(), server.watch.longest_s
        total.add(found)
        held += len(noted)
        longest = max(longest, longest_s)
        for hold in noted:
            print(f"\n--- {hold}\n", flush=True)
        print(f"seed {seed}: {found.requests} requests, {len(found.broken)} broken promises", flush=True)
        _show_broken(found)
        seed += 1
        if not described.requests:
            break
    _show(total, seconds=time.monotonic() - began)
    print(
        f"the event loop was held {held} times for more than {LONGEST_S * 1000:.0f} ms; {longest * 1000:.0f} ms at most"
    )
    sys.exit(1 if total.broken or total.errors or held else 0)


def _show(total: Campaign, *, seconds: float) -> None:
    statuses = Counter[int]()
    for (_, status), count in total.by_status.items():
        statuses[status] += count
    for operation, count in sorted(total.by_operation.items()):
        each = {status: number for (name, status), number in sorted(total.by_status.items()) if name == operation}
        print(f"{count:6}  {operation:60}  {'  '.join(f'{status}: {number}' for status, number in each.items())}")
    print(f"\n{total.requests} requests of {len(total.by_operation)} operations in {seconds:.0f} s")
    print("by status:", dict(sorted(statuses.items())))
    print("by kind:", dict(total.by_phase))
    print("checks:", dict(total.checked))
    print(f"{total.cases.total()} cases of grammars:", dict(total.cases))
    print(f"{len(total.broken)} broken promises, {len(total.errors)} errors")


def _show_broken(found: Campaign) -> None:
    for one in found.broken.values():
        print(f"\n--- {one.operation}: {one.check}\n{one.said}\n{one.curl}\n", flush=True)
    for error in found.errors:
        print(f"\n--- error: {error}\n", flush=True)


if __name__ == "__main__":
    main()
