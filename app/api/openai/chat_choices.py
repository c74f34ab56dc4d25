"""Converts answers into OpenAI's choices: annotations, log probabilities, finish reason."""

from collections.abc import Sequence
from typing import Any

from app.answering.answers.answer import Answer
from app.answering.citing.citation import Citation
from app.api.schemas.answers import CitationBody
from generation.ports import Tokenizer
from generation.types import TokenLogprob

_LEAST = -9999.0  # OpenAI's value for a probability of 0, since JSON has no negative infinity


def choice_of(answer: Answer, *, index: int, in_json: bool, tokenizer: Tokenizer) -> dict[str, Any]:
    """A complete answer as a choice; a refusal `in_json` has null `content`, since a sentence is not JSON."""
    refused = in_json and answer.reason is not None and answer.reason.refuses
    message = {
        "role": "assistant",
        "content": None if refused else answer.text,
        "refusal": answer.text if refused else None,
        "annotations": annotations(answer),
    }
    told = logprobs(answer.logprobs, tokenizer)
    return {"index": index, "message": message, "finish_reason": finish_reason(answer), "logprobs": told}


def annotations(answer: Answer) -> list[dict[str, object]]:
    """The citations as OpenAI's `file_citation` annotations."""
    return [_annotation(citation) for citation in answer.citations]


def finish_reason(answer: Answer) -> str:
    """OpenAI's finish reason: `length` where an answer was cut, or `stop`; a cancelled one has no client to read it."""
    return "length" if answer.finish_reason in {"length", "repetition"} else "stop"


def logprobs(tokens: Sequence[TokenLogprob], tokenizer: Tokenizer) -> dict[str, Any] | None:
    """OpenAI's `logprobs`, None without any. Tokens without text, which end an answer, are left out."""
    if not tokens:
        return None
    content = [
        {
            **_token(token.token_id, token.logprob, tokenizer),
            "top_logprobs": [_token(token_id, logprob, tokenizer) for token_id, logprob in token.top],
        }
        for token in tokens
        if tokenizer.piece(token.token_id)
    ]
    return {"content": content, "refusal": None}


def _token(token_id: int, logprob: float, tokenizer: Tokenizer) -> dict[str, Any]:
    piece = tokenizer.piece(token_id)
    return {"token": piece.decode("utf-8", "replace"), "bytes": list(piece), "logprob": max(logprob, _LEAST)}


def _annotation(citation: Citation) -> dict[str, object]:
    """One annotation: `index` is the end of the marker; the fields of the citation are included."""
    return {
        "type": "file_citation",
        "file_id": citation.document_id,
        **CitationBody.of(citation).model_dump(),
        "index": citation.answer_end,
        "number": citation.index,
    }
