"""Refuses parameters of OpenAI's protocol that Footnote does not support; null counts as left out."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import PydanticCustomError

UNSUPPORTED = "unsupported_parameter"
"""The type of a validation error for an unsupported parameter; `ctx["param"]` names it."""

_NEVER = (
    "audio",
    "moderation",
    "prediction",
    "prompt_cache_options",
    "reasoning_effort",
    "verbosity",
    "web_search_options",
)
_ONLY: Mapping[str, tuple[object, ...]] = {
    "function_call": ("none",),
    "modalities": (["text"], []),
    "prompt_cache_retention": ("in_memory",),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "tool_choice": ("none",),
}
_UNUSED_WITH = {"tools": "tool_choice", "functions": "function_call"}
_PARTS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text"}),
    "refusal": frozenset({"type", "refusal"}),
}


def refuse_parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion's request without unsupported parameters that are null.

    Raises:
        PydanticCustomError: An unsupported parameter is used.
    """
    supported = without_unsupported(body, never=_NEVER, only=_ONLY)
    for name, choice in _UNUSED_WITH.items():
        if body.get(name) and body.get(choice) != "none":
            raise unsupported(
                name, f"The parameter '{name}' is not supported: Footnote calls no tools; send {choice} 'none'."
            )
    return supported


def without_unsupported(
    body: Mapping[str, Any], *, never: Sequence[str], only: Mapping[str, tuple[object, ...]]
) -> dict[str, Any]:
    """The fields without the unsupported ones that are null.

    Args:
        body: An object of the request.
        never: Names of parameters that no value supports.
        only: The supported values of parameters by name.

    Raises:
        PydanticCustomError: An unsupported parameter or value is used.
    """
    for name in never:
        if body.get(name) is not None:
            raise unsupported(name)
    for name, allowed in only.items():
        if body.get(name) is not None and body[name] not in allowed:
            raise unsupported(name, f"The parameter '{name}' is not supported with this value.")
    return {name: value for name, value in body.items() if name not in never}


def refuse_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message without its null and empty fields.

    Raises:
        PydanticCustomError: It is of a tool, calls tools, or has audio.
    """
    if message.get("role") in ("tool", "function"):  # a tuple, since the value may be unhashable
        raise unsupported(
            "role", f"Messages of the role '{message['role']}' are not supported: Footnote calls no tools."
        )
    for name in ("tool_calls", "function_call", "tool_call_id", "audio"):
        if message.get(name):
            raise unsupported(name, f"'{name}' of a message is not supported: messages are text.")
    return {name: value for name, value in message.items() if value not in (None, [])}


def refuse_content(message: Mapping[str, Any]) -> None:
    """Check that all content parts of a message are text.

    Raises:
        PydanticCustomError: A part is not text.
    """
    content = message.get("content")
    for place, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict):
            continue  # the validation of the part reports it better
        kind = str(part.get("type"))[:40]
        known = _PARTS.get(kind)
        if known is None:
            raise unsupported(f"content.{place}.type", f"Content of the type '{kind}' is not supported: only text is.")
        if more := sorted(str(name) for name in part if name not in known and part[name] is not None):
            raise unsupported(f"content.{place}.{more[0][:40]}")


def unsupported(param: str, sentence: str | None = None) -> PydanticCustomError:
    """The error that names `param`, relative to the model being validated."""
    said = sentence or f"The parameter '{param}' is not supported."
    return PydanticCustomError(UNSUPPORTED, "{sentence}", {"sentence": said, "param": param})
