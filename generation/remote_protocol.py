"""OpenAI's completions protocol as vLLM, SGLang and llama.cpp's server speak it: request body and streamed chunks."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generation.errors import ConstraintInvalid
from generation.types import Constraint, FinishReason, GenerationRequest, JsonSchema, SamplingParams, TokenLogprob

_FINISH_REASONS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}
_TOKEN_ID = "token_id:"  # noqa: S105 - how vLLM spells a token by its id
_LARGEST_COUNT = (1 << 31) - 1  # a count of tokens, or a token's id
_UNLIKELY = -9999.0  # OpenAI's logarithm of a probability that is 0


class ProtocolBroken(Exception):
    """The response violates the completions protocol, or reports a server failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCounts:
    """The server's token counts, including the chunk that carries them."""

    prompt_tokens: int | None
    completion_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamChunk:
    """One event of the stream. `token_ids` is None when the server does not send them."""

    text: str = ""
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    finish_reason: FinishReason | None = None
    usage: ServerCounts | None = None


def completion_body(request: GenerationRequest, *, model: str, cache_salt: str | None) -> dict[str, Any]:
    """The JSON of `POST /completions`.

    Parameters that mean "off" are sent too: vLLM and SGLang otherwise take the model's own
    `generation_config.json`, llama.cpp its defaults (`min_p` 0.05, `top_k` 40), and greedy would not
    be greedy. -1 is the one `top_k` that all of them read as "all". Servers ignore unknown fields.

    Token ids and running counts are asked for where they exist (vLLM and SGLang: `return_token_ids`,
    `continuous_usage_stats`), so that every chunk is counted by the server.

    Raises:
        ConstraintInvalid: the JSON schema is no JSON.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "prompt": list(request.prompt),
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_token_ids": True,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k or -1,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
    }
    body |= _optional(sampling)
    if cache_salt is not None:
        body["cache_salt"] = cache_salt
    return body | response_format(request.constraint)


def response_format(constraint: Constraint | None) -> dict[str, Any]:
    """The field that holds the output to a JSON schema; none for other constraints.

    Raises:
        ConstraintInvalid: the JSON schema is no JSON.
    """
    if not isinstance(constraint, JsonSchema):
        return {}
    try:
        schema = {"name": "answer", "strict": True, "schema": json.loads(constraint.schema)}
    except (ValueError, RecursionError):
        raise ConstraintInvalid("The JSON schema asked of the output is not JSON.") from None
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _optional(sampling: SamplingParams) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if sampling.seed is not None:
        fields["seed"] = sampling.seed % (1 << 63)  # vLLM takes 64 bits with a sign
    if sampling.stop:
        fields["stop"] = list(sampling.stop)
    if sampling.ignore_eos:
        fields["ignore_eos"] = True
    if sampling.logit_bias:
        fields["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias}
    if sampling.logprobs is not None:
        fields |= {"logprobs": sampling.logprobs, "return_tokens_as_token_ids": True}
    return fields


def parse_chunk(data: bytes) -> StreamChunk:
    """One event's JSON.

    Raises:
        ProtocolBroken: it is none, or an error the server met midway.
    """
    return chunk_of(data, text_of=lambda choice: choice.get("text"))


def chunk_of(data: bytes, *, text_of: Callable[[Mapping[str, Any]], object]) -> StreamChunk:
    """One event's JSON, with the text that `text_of` finds in its choice.

    Raises:
        ProtocolBroken: it is none, or an error the server met midway.
    """
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        raise ProtocolBroken from None
    if not isinstance(event, dict) or event.get("error") or event.get("object") == "error":
        raise ProtocolBroken
    choices = event.get("choices") or []
    if not isinstance(choices, list) or len(choices) > 1:
        raise ProtocolBroken
    usage = _usage(event.get("usage"))
    if not choices:  # the usage's own chunk
        return StreamChunk(usage=usage)
    choice = choices[0]
    if not isinstance(choice, dict):
        raise ProtocolBroken
    text = text_of(choice) or ""
    if not isinstance(text, str):
        raise ProtocolBroken
    token_ids = _token_ids(choice.get("token_ids"))
    return StreamChunk(
        text=_well_formed(text),
        token_ids=token_ids,
        logprobs=_logprobs(choice.get("logprobs"), token_ids or ()),
        finish_reason=_finish_reason(choice.get("finish_reason")),
        usage=usage,
    )


def _finish_reason(reason: object) -> FinishReason | None:
    if reason is None or reason == "":
        return None
    if not isinstance(reason, str) or reason not in _FINISH_REASONS:  # "abort", "error", "content_filter"
        raise ProtocolBroken
    return _FINISH_REASONS[reason]


def _usage(usage: object) -> ServerCounts | None:
    if usage is None:
        return None
    if not isinstance(usage, dict):
        raise ProtocolBroken
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    prompt = usage.get("prompt_tokens")
    return ServerCounts(
        prompt_tokens=None if prompt is None else _count(prompt),
        completion_tokens=_count(usage.get("completion_tokens") or 0),
        cached_tokens=_count(cached or 0),
    )


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST_COUNT:
        raise ProtocolBroken
    return value


def _token_ids(value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise ProtocolBroken
    return tuple(map(_count, value))


def _well_formed(text: str) -> str:
    r"""JSON may spell half a character (`\ud83d`); no encoder downstream would take it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _logprobs(value: object, token_ids: Sequence[int]) -> tuple[TokenLogprob, ...]:
    """Log probabilities in vLLM's or llama.cpp's shape; tokens whose id is not sent are left out."""
    try:
        if not isinstance(value, dict):
            return ()
        if isinstance(value.get("content"), list):
            return tuple(_llama_cpp_logprob(entry) for entry in value["content"])
        return tuple(_vllm_logprobs(value, token_ids))
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        raise ProtocolBroken from None


def _llama_cpp_logprob(entry: Mapping[str, Any]) -> TokenLogprob:
    top = tuple((_count(other["id"]), _logprob(other["logprob"])) for other in entry.get("top_logprobs") or ())
    return TokenLogprob(_count(entry["id"]), _logprob(entry["logprob"]), _best_first(top))


def _vllm_logprobs(value: Mapping[str, Any], token_ids: Sequence[int]) -> list[TokenLogprob]:
    tops = value.get("top_logprobs") or []
    result = []
    for index, (token, logprob) in enumerate(zip(value["tokens"], value["token_logprobs"], strict=True)):
        told = token_ids[index] if index < len(token_ids) else None
        token_id = _id_in(token) if token.startswith(_TOKEN_ID) else told
        if token_id is None or logprob is None:
            continue
        top = tops[index] if index < len(tops) and tops[index] else {}
        named = [(_id_in(name), _logprob(p)) for name, p in top.items() if name.startswith(_TOKEN_ID)]
        result.append(TokenLogprob(token_id, _logprob(logprob), _best_first(named)))
    return result


def _id_in(name: str) -> int:
    digits = name.removeprefix(_TOKEN_ID)
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
        raise ProtocolBroken
    return _count(int(digits))


def _logprob(value: object) -> float:
    """A finite log probability; JSON as Python reads it has infinities and NaN, which no client could read."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value < math.inf:
        raise ProtocolBroken
    return float(min(0.0, max(value, _UNLIKELY)))


def _best_first(top: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    return tuple(sorted(top, key=lambda pair: -pair[1]))
