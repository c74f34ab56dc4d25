"""The formats of an answer: Markdown, plain text, or JSON that satisfies a schema."""

import json
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from app.errors import InvalidRequest
from retrieval.types import Span

Format: TypeAlias = Literal["markdown", "text", "json"]


def answer_schema(sources: int | None = None) -> str:
    """The default schema of a JSON answer: its text, and the numbers of the sources it is from.

    Args:
        sources: How many sources there are; only their numbers are allowed. None allows any number, for a prompt
            that is written before the sources are known.
    """
    numbers: dict[str, object] = {"type": "array", "items": {"type": "integer"}}
    if sources is not None:
        numbers["maxItems"] = sources
        if sources:
            numbers["items"] = {"enum": list(range(1, sources + 1))}
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string"}, "sources": numbers},
        "required": ["answer", "sources"],
        "additionalProperties": False,
    }
    return json.dumps(schema)


ANSWER_SCHEMA = answer_schema()
ANY_OBJECT = json.dumps({"type": "object"})
SCHEMA_FIELDS = {"ask": "json_schema", "chat.completions": "response_format", "responses": "text.format"}
"""The field of a request that holds the schema, by endpoint; for errors."""


def schema_text(schema: Mapping[str, object], *, param: str) -> str:
    """A caller's schema as JSON text.

    Args:
        schema: The parsed schema.
        param: The field of the request that held it, for the error.

    Raises:
        InvalidRequest: It is not Unicode text.
    """
    text = json.dumps(schema, ensure_ascii=False)
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidRequest("The schema is not Unicode text.", param=param)
    return text


def json_answer(answer: str, numbers: Sequence[int] = ()) -> tuple[str, tuple[Span, ...]]:
    """A document that satisfies `answer_schema`, and the place of each number in it."""
    text, places = f'{{"answer": {json.dumps(answer, ensure_ascii=False)}, "sources": [', []
    for at, number in enumerate(numbers):
        text += ", " if at else ""
        places.append(Span(len(text), len(text) + len(str(number))))
        text += str(number)
    return f"{text}]}}", tuple(places)
