"""What a 422 says about the invalid fields of a request: at most 20 of them, in at most 16 KB."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.api.schemas.unknown_fields import MORE_UNKNOWN
from app.api.schemas.unsupported import UNSUPPORTED

_MOST = 20
_BYTES = 3_500  # of the named problems as JSON; a response holds their text up to three times
_FIELD_CHARS = 100
_MESSAGE_CHARS = 300


@dataclass(frozen=True, slots=True)
class FieldProblems:
    """The invalid fields of one request, none with the value that was sent.

    Args:
        errors: The first problems, each with its `field` and `message`.
        more: The number of problems that are not in `errors`.
        broken: Whether the body is not JSON.
        unsupported: The first unknown or unsupported parameter and the sentence about it; None without any.
    """

    errors: list[dict[str, str]]
    more: int
    broken: bool
    unsupported: tuple[str, str] | None

    @classmethod
    def of(cls, found: Sequence[Any]) -> "FieldProblems":
        """The problems of pydantic's errors."""
        errors: list[dict[str, str]] = []
        size = 0
        for item in found[:_MOST]:
            if item["type"] == MORE_UNKNOWN:
                break
            one = {"field": _field(item["loc"]), "message": cut(str(item["msg"]), _MESSAGE_CHARS)}
            size += len(json.dumps(one))
            if size > _BYTES:
                break
            errors.append(one)
        return cls(
            errors,
            more=sum(map(_count, found)) - len(errors),
            broken=any(item["type"] == "json_invalid" for item in found),
            unsupported=next(map(_unsupported, filter(_is_unsupported, found)), None),
        )

    @property
    def param(self) -> str | None:
        """The first invalid field."""
        return self.errors[0]["field"] if self.errors else None

    @property
    def detail(self) -> str:
        """One sentence for each problem, and the number of the others."""
        sentences = [f"{item['field']}: {item['message']}" for item in self.errors]
        if self.more:
            sentences.append(f"and {self.more} more" if sentences else f"{self.more} fields are invalid")
        return "; ".join(sentences)


def cut(text: str, chars: int) -> str:
    """The text, or its beginning with an ellipsis where it is longer than `chars`."""
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def _field(location: Sequence[object]) -> str:
    within = location[1:] if location and location[0] in {"body", "query", "path"} else location
    named = ".".join(map(str, within))
    return cut(named, _FIELD_CHARS) or "body"


def _count(item: Mapping[str, Any]) -> int:
    return int(item["ctx"]["count"]) if item["type"] == MORE_UNKNOWN else 1


def _is_unsupported(item: Mapping[str, Any]) -> bool:
    return item["type"] in {"extra_forbidden", UNSUPPORTED}


def _unsupported(item: Mapping[str, Any]) -> tuple[str, str]:
    parts = (*item["loc"], item.get("ctx", {}).get("param", ""))
    param = cut(".".join(str(part) for part in parts if part != "body").strip("."), _FIELD_CHARS)
    said = str(item["msg"]) if item["type"] == UNSUPPORTED else f"The parameter '{param}' is not supported."
    return param, cut(said, _MESSAGE_CHARS)
