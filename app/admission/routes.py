"""Which requests are admitted how."""

import re
from enum import Enum

_GENERATING = re.compile(r"/v1/(ask|chat/completions)/?$")
_FINDING = re.compile(r"/v1/(search|embeddings|tokens/count|vector_stores/[^/]+/search)/?$")
_TAKING_IN = re.compile(r"/v1/(documents(/[^/]+)?|files|vector_stores/[^/]+/files)/?$")


class Admitted(Enum):
    """What a request needs: a seat and a turn, a turn, to be counted only, or nothing."""

    GENERATING = "generating"
    FINDING = "finding"
    COUNTED = "counted"
    FREELY = "freely"


def admitted(method: str, path: str) -> Admitted:
    """How `method path` is admitted. Whatever works for a caller is limited; looking things up is not."""
    if method == "POST" and _GENERATING.match(path):
        return Admitted.GENERATING
    if method == "POST" and _FINDING.match(path):
        return Admitted.FINDING
    if method in {"POST", "PUT"} and _TAKING_IN.match(path) and not path.endswith("/delete"):
        return Admitted.COUNTED
    return Admitted.FREELY
