"""`python docker/lock.py REPORT [--without NAME] [--beyond LOCK]`: what pip would install, as requirements with hashes.

REPORT is what `pip install --dry-run --ignore-installed --report REPORT …` writes; `make lock` does both. What comes
out holds on this kind of machine and Python alone: it names the very files pip chose for it. `--without` leaves a
package out, `--beyond` every line that another lock has.
"""

import argparse
import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any


def locked(report: Mapping[str, Any], *, without: Collection[str] = (), beyond: str = "") -> str:
    """A requirements file for `pip install --require-hashes --no-deps -r`: a pinned line a package, in their order.

    Args:
        report: pip's own.
        without: Names of packages to leave out.
        beyond: Another lock, whose lines are left out.

    Raises:
        ValueError: The report is of another version, or a package came without a hash, from a folder say.
    """
    if report.get("version") != "1":
        raise ValueError("This is not an installation report of version 1.")
    lines = []
    for item in report["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        if "dir_info" in item["download_info"] or name in without:
            continue  # Footnote itself is from this folder
        digest = item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if digest is None:
            raise ValueError(f"{name} came without a hash.")
        lines.append(f"{name}=={version} --hash=sha256:{digest}")
    return "".join(f"{line}\n" for line in sorted(set(lines) - set(beyond.splitlines()), key=str.casefold))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write what pip would install as requirements with hashes.")
    parser.add_argument("report", type=Path)
    parser.add_argument("--without", action="append", default=[], metavar="NAME")
    parser.add_argument("--beyond", type=Path, metavar="LOCK")
    given = parser.parse_args()
    known = given.beyond.read_text() if given.beyond else ""
    sys.stdout.write(locked(json.loads(given.report.read_text()), without=given.without, beyond=known))
