"""`python -m tests.faults.power`: cut the power at random changes of a server's work, and look at what is left."""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console

from tests.faults.power.cuts import Cut, Recording, losses


def main() -> None:
    """Record, cut, look, tell; ends with what was done, as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.power", description=__doc__)
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, help="file for the figures")
    chosen = parser.parse_args()
    console = Console()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        recording = Recording.made_in(folder / "recorded")
        cuts = recording.cuts(chosen.cuts, seed=chosen.seed)

        def told(number: int, _: Cut) -> None:
            if number % 10 == 9:
                console.print(f"{number + 1} cuts, {time.monotonic() - began:.0f} s")

        (folder / "cuts").mkdir()
        lost = list(losses(recording, cuts, folder / "cuts", report=told))
    figures = {
        "cuts": len(cuts),
        "of_what_no_fsync_made_durable": dict(Counter(cut.unsynced.value for cut in cuts)),
        "recorded_changes": len(recording.events),
        "fsyncs": sum(event.kind == b"S" for event in recording.events),
        "acknowledged_steps": len(recording.notes),
        "cuts_that_lost": len(lost),
    }
    console.print_json(json.dumps(figures))
    for one in lost:
        console.print(one, markup=False)
    if chosen.out:
        chosen.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
