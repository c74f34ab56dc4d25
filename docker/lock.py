"""`python docker/lock.py REPORT`: what pip would install, as requirements with hashes.

REPORT is what `pip install --dry-run --ignore-installed --report REPORT …` writes; `make lock` does both. What comes
out holds on this kind of machine and Python alone: it names the very files pip chose for it.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def locked(report: Mapping[str, Any]) -> str:
    """A requirements file for `pip install --require-hashes --no-deps -r`: a pinned line a package, in their order.

    Raises:
        ValueError: The report is of another version, or a package came without a hash, from a folder say.
    """
    if report.get("version") != "1":
        raise ValueError("This is not an installation report of version 1.")
    lines = []
    for item in report["install"]:
        if "dir_info" in item["download_info"]:
            continue  # Footnote itself, from this folder
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        digest = item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if digest is None:
            raise ValueError(f"{name} came without a hash.")
        lines.append(f"{name}=={version} --hash=sha256:{digest}")
    return "".join(f"{line}\n" for line in sorted(lines, key=str.casefold))


if __name__ == "__main__":
    sys.stdout.write(locked(json.loads(Path(sys.argv[1]).read_text())))
