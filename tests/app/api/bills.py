"""What every bill of an answer must add up to."""

from collections.abc import Sequence
from typing import Any

from app.usage.ledger.events import UsageEvent

PROMPT = ("template", "system", "history", "question", "context")
"""The components of the prompt of a language model that answers."""


def answering(usage: dict[str, Any]) -> dict[str, Any]:
    """The call of the language model that answers, made or planned."""
    (call,) = [call for call in usage["calls"] if call["purpose"] == "answer"]
    found: dict[str, Any] = call
    return found


def assert_adds_up(usage: dict[str, Any], rows: Sequence[UsageEvent]) -> None:
    """The parts of `usage` sum to its total, and its calls are the ledger's `rows` that have tokens."""
    total = usage["total_tokens"]
    assert total == usage["prompt_tokens"] + usage["completion_tokens"]
    assert total == sum(usage["components"].values())
    assert total == sum(call["prompt_tokens"] + call["completion_tokens"] for call in usage["calls"])
    assert usage["completion_tokens"] == sum(call["completion_tokens"] for call in usage["calls"])
    assert usage["prompt_tokens_details"]["cached_tokens"] == sum(call["cached_tokens"] for call in usage["calls"])
    others = [call for call in usage["calls"] if call["purpose"] != "answer"]
    assert sum(found["tokens"] for found in usage["auxiliary"]) == sum(
        call["prompt_tokens"] + call["completion_tokens"] for call in others
    )
    assert sum(usage["by_document"].values()) == usage["components"]["context"]
    made = [
        (call["model"], call["prompt_tokens"], call["cached_tokens"], call["completion_tokens"])
        for call in usage["calls"]
        if not call["planned"]
    ]
    written = [
        (row.model, row.input_tokens, row.cached_tokens, row.output_tokens)
        for row in rows
        if row.input_tokens + row.output_tokens
    ]
    assert sorted(made) == sorted(written)
    assert all(model for model, *_ in made)
