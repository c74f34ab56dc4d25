"""`python docker/check_base.py IMAGE`: refuses a base image that is not named by tag and digest.

A tag may name another image tomorrow; a digest names these bytes. `make release-images` builds no image without it.
"""

import re
import sys

_PINNED = re.compile(r"[\w.:/-]+:[\w.-]+@sha256:[0-9a-f]{64}")


def trouble(image: str) -> str:
    """What is wrong with `image`; empty where nothing is."""
    if _PINNED.fullmatch(image):
        return ""
    return (
        f"PYTHON_IMAGE is {image!r}. A release needs the tag and the digest, name:tag@sha256:<64 digits>. "
        "`docker buildx imagetools inspect <name:tag>` shows the digest."
    )


if __name__ == "__main__":
    sys.exit(trouble(sys.argv[1] if len(sys.argv) > 1 else "") or None)
