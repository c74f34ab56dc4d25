"""An answer as OpenAI's protocol shows it: annotations, log probabilities, why it ended."""

from collections.abc import Sequence
from typing import Any

from app.answering.abstention import REFUSED
from app.answering.answer import Answer
from app.answering.citation import Citation
from app.api.schemas.answers import CitationBody
from generation.ports import Tokenizer
from generation.types import TokenLogprob

_LEAST = -9999.0  # stands for a probability of 0, whose logarithm JSON cannot say


def choice_of(answer: Answer, *, index: int, in_json: bool, tokenizer: Tokenizer) -> dict[str, Any]:
    """A whole answer as a choice; of one `in_json` a refusal is no content, since a sentence would be no JSON."""
    refused = in_json and answer.reason in REFUSED
    message = {
        "role": "assistant",
        "content": None if refused else answer.text,
        "refusal": answer.text if refused else None,
        "annotations": annotations(answer),
    }
    told = logprobs(answer.logprobs, tokenizer)
    return {"index": index, "message": message, "finish_reason": finish_reason(answer), "logprobs": told}


def annotations(answer: Answer) -> list[dict[str, object]]:
    """OpenAI's file citations."""
    return [_annotation(citation) for citation in answer.citations]


def finish_reason(answer: Answer) -> str:
    """OpenAI knows stop and length; a cancelled answer has no reader left to tell."""
    return "length" if answer.finish_reason == "length" else "stop"


def logprobs(tokens: Sequence[TokenLogprob], tokenizer: Tokenizer) -> dict[str, Any] | None:
    """OpenAI's `logprobs`, None where there are none. Tokens without text, which end an answer, are left out."""
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
    """`index` is the character the marker ends at; our own fields follow."""
    return {
        "type": "file_citation",
        "file_id": citation.document_id,
        **CitationBody.of(citation).model_dump(),
        "index": citation.answer_end,
        "number": citation.index,
    }
