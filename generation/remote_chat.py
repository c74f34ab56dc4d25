"""OpenAI's chat completions as servers without token ids speak it: Ollama, LM Studio, and services behind an API.

Fields that OpenAI does not know are not sent, but for one: `chat_template_kwargs` tells a model that thinks aloud not
to (vLLM, SGLang, llama.cpp). A server that refuses a request with it is asked again without.
"""

from collections.abc import Mapping
from typing import Any

from generation.byte_tokenizer import ByteTokenizer
from generation.remote_protocol import ProtocolBroken, StreamChunk, chunk_of, response_format
from generation.types import GenerationRequest

EXTENSION = "chat_template_kwargs"
"""The field that OpenAI does not know."""

_NO_THINKING = {"enable_thinking": False, "thinking": False}


def chat_body(request: GenerationRequest, *, model: str, tokenizer: ByteTokenizer) -> dict[str, Any]:
    """The JSON of `POST /chat/completions`.

    `seed`, `stop` and penalties are sent where they are asked for; what works by token ids, which the server has
    others of, is not: `logit_bias`, `logprobs`, `top_k`, `min_p`, `repetition_penalty`.

    Raises:
        ConstraintInvalid: The JSON schema is no JSON.
        ValueError: The prompt was not laid out by `tokenizer`.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "messages": tokenizer.messages(request.prompt),
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        EXTENSION: dict(_NO_THINKING),
    }
    if sampling.presence_penalty:
        body["presence_penalty"] = sampling.presence_penalty
    if sampling.frequency_penalty:
        body["frequency_penalty"] = sampling.frequency_penalty
    if sampling.seed is not None:
        body["seed"] = sampling.seed % (1 << 63)
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    return body | response_format(request.constraint)


def parse_chat_chunk(data: bytes) -> StreamChunk:
    """One event's JSON. What a model thinks, which servers send apart, is no text.

    Raises:
        ProtocolBroken: It is none, or an error the server met midway.
    """
    return chunk_of(data, text_of=_text_of)


def _text_of(choice: Mapping[str, Any]) -> object:
    delta = choice.get("delta") or {}
    if not isinstance(delta, dict):
        raise ProtocolBroken
    return delta.get("content")
