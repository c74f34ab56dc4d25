"""Records the golden answers again, or shows how they differ from what the code answers now.

`python -m tests.golden` records; `--diff` prints unified diffs and changes nothing.
"""

import argparse
import multiprocessing
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.golden.application import make_library
from tests.golden.groups import GROUPS, all_of
from tests.golden.recording import RECORDED, Kept, differences, read, write


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 where `--diff` finds differences."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=RECORDED, help="the file to write; default: the recorded one")
    parser.add_argument("--diff", action="store_true", help="print differences and write nothing")
    parser.add_argument("--most", type=int, default=10, help="cases whose differences are printed")
    parser.add_argument("--workers", type=int, default=2, help="processes that ask at once")
    options = parser.parse_args(arguments)
    answers = _answers(options.workers)
    if not options.diff:
        write(answers, options.out)
        print(f"{len(answers)} cases in {options.out}, {options.out.stat().st_size} bytes.")
        return 0
    told = list(differences(read(), answers, most=options.most))
    print("\n\n".join(told) or f"{len(answers)} cases are as recorded.")
    return 1 if told else 0


def _answers(workers: int) -> list[Kept]:
    """What all cases are answered now, each group in a process of a pool."""
    with tempfile.TemporaryDirectory(prefix="footnote-golden-") as folder:
        library = make_library(Path(folder) / "library")
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            running = [pool.submit(all_of, *group, library, Path(folder) / "-".join(group)) for group in GROUPS]
            return [kept for group in running for kept in group.result()]


if __name__ == "__main__":
    sys.exit(main())
