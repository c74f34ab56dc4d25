"""A response of OpenAI's Responses API: its output items, annotations, status and usage, from an answer."""

import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import anyio

from app.answering.answers.answer import Answer
from app.answering.citing.citation import Citation
from app.answering.metering.token_usage import TokenUsage
from app.answering.running.open_answer import OpenAnswer
from app.api.openai.chat_choices import logprobs
from app.api.openai.schemas.responses import ResponseRequest
from app.api.openai.schemas.vector_stores import attributes_of
from app.api.schemas.answers import CitationBody
from app.api.schemas.token_usage import UsageBody
from generation.ports import Tokenizer
from generation.types import FinishReason, TokenLogprob
from retrieval.types import Hit, Metadata

Item = dict[str, Any]
"""An output item, a part of one, or a whole response, as JSON."""

_LENGTH = {"reason": "max_output_tokens"}
_ENDED = {
    FinishReason.LENGTH.value: "incomplete",
    FinishReason.REPETITION.value: "incomplete",
    FinishReason.CANCELLED.value: "cancelled",
}


@dataclass(frozen=True, slots=True)
class ResponseObject:
    """Makes the response to one request, and its items, at any time of the answer.

    Attributes:
        request: The request, which the response repeats.
        id: The request's id.
        tokenizer: Spells the tokens of log probabilities.
        metadata_of: Reads the metadata of documents by id from the database.
        created_at: Unix seconds.
    """

    request: ResponseRequest
    id: str
    tokenizer: Tokenizer
    metadata_of: Callable[[Set[str]], Mapping[str, Metadata]]
    created_at: int

    def at(
        self, status: str, output: list[Item], *, usage: TokenUsage | None = None, error: Item | None = None
    ) -> Item:
        """The response with this status and output."""
        request = self.request
        sampling = request.sampling_params()
        form = request.text.format if request.text is not None else None
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created_at,
            "completed_at": int(time.time()) if status == "completed" else None,
            "status": status,
            "background": False,
            "error": error,
            "incomplete_details": _LENGTH if status == "incomplete" else None,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "max_tool_calls": request.max_tool_calls,
            "metadata": request.metadata or {},
            "model": request.model,
            "output": output,
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "previous_response_id": request.previous_response_id,
            "conversation": None if request.conversation_id is None else {"id": request.conversation_id},
            "prompt_cache_key": request.prompt_cache_key,
            "reasoning": None,
            "safety_identifier": request.safety_identifier,
            "service_tier": "default",
            "store": request.keeps,
            "temperature": sampling.temperature,
            "text": {"format": {"type": "text"} if form is None else _sent(form)},
            "tool_choice": _sent(request.tool_choice) or "auto",
            "tools": [_sent(tool) for tool in request.tools or ()],
            "top_logprobs": request.top_logprobs or 0,
            "top_p": sampling.top_p,
            "truncation": "disabled",
            "usage": None if usage is None else _usage(usage),
            "user": request.user,
        }

    def ended(self, answer: Answer, output: list[Item]) -> Item:
        """The response of an answer that did not fail."""
        return self.at(status_of(answer), output, usage=answer.usage)

    async def searched(self, opened: OpenAnswer) -> Item | None:
        """The file search of an answer whose sources are known; None where it was not requested, or nothing searched.

        Raises:
            StoreUnavailable: The attributes of the files cannot be read.
        """
        found = opened.grounding
        if self.request.file_search is None or found is None:
            return None
        item = self.searching([found.question.text], status="completed")
        if self.request.includes("file_search_call.results"):
            hits = found.retrieved.found
            metadata = await anyio.to_thread.run_sync(self.metadata_of, {hit.chunk.document_id for hit in hits})
            item["results"] = [_result(hit, metadata.get(hit.chunk.document_id, {})) for hit in hits]
        return item

    def searching(self, queries: list[str], *, status: str) -> Item:
        """The item of the file search without its results."""
        return {
            "id": self._item_id("fs"),
            "type": "file_search_call",
            "status": status,
            "queries": queries,
            "results": None,
        }

    def message(self, status: str, content: list[Item]) -> Item:
        """The assistant's message."""
        return {
            "id": self._item_id("msg"),
            "type": "message",
            "role": "assistant",
            "status": "incomplete" if status == "cancelled" else status,
            "content": content,
        }

    def part(self, text: str, *, refused: bool, answer: Answer | None = None) -> Item:
        """The content of the message: a refusal, or the text with the annotations of the whole `answer`."""
        if refused:
            return {"type": "refusal", "refusal": text}
        return {
            "type": "output_text",
            "text": text,
            "annotations": [] if answer is None else [annotation(citation) for citation in answer.citations],
            "logprobs": [] if answer is None else self.logprobs(answer.logprobs),
        }

    def logprobs(self, tokens: tuple[TokenLogprob, ...]) -> list[Item]:
        """The log probabilities of tokens; empty unless they were requested."""
        told = logprobs(tokens, self.tokenizer)
        return [] if told is None else list(told["content"])

    def _item_id(self, prefix: str) -> str:
        return f"{prefix}_{self.id.partition('_')[2]}"


def status_of(answer: Answer) -> str:
    """`completed`, `incomplete` where the tokens were used up, or `cancelled`."""
    return _ENDED.get(answer.finish_reason, "completed")


def refuses(answer: Answer, *, in_json: bool) -> bool:
    """Whether a whole answer is a refusal: only in JSON, since there a sentence is no content."""
    return in_json and answer.reason is not None and answer.reason.refuses


def annotation(citation: Citation) -> Item:
    """OpenAI's `file_citation`: `index` is the end of the marker; `footnote` is the citation with its exact range."""
    return {
        "type": "file_citation",
        "index": citation.answer_end,
        "file_id": citation.document_id,
        "filename": citation.filename,
        "footnote": CitationBody.of(citation).model_dump(),
    }


def failure(problem: Mapping[str, object]) -> Item:
    """The `error` of a failed response from a problem document, whose members follow."""
    status = problem["status"]
    code = "rate_limit_exceeded" if status == 429 else "server_error"
    return {"code": code, "message": problem["detail"], "problem": dict(problem)}


def _result(hit: Hit, metadata: Metadata) -> Item:
    return {
        "file_id": hit.chunk.document_id,
        "filename": hit.chunk.filename,
        "score": hit.scores.ranking,
        "text": hit.chunk.text,
        "attributes": attributes_of(metadata),
    }


def _usage(usage: TokenUsage) -> Item:
    """OpenAI's names of the counts, then what is ours."""
    ours = UsageBody.of(usage).model_dump()
    details = ours.pop("prompt_tokens_details")
    return {
        "input_tokens": ours.pop("prompt_tokens"),
        "input_tokens_details": {"cached_tokens": details["cached_tokens"], "cache_write_tokens": 0},
        "output_tokens": ours.pop("completion_tokens"),
        "output_tokens_details": {"reasoning_tokens": 0},
        **ours,
    }


def _sent(value: Any) -> Any:
    """A part of the request as it was sent, without what was left out."""
    return value.model_dump(by_alias=True, exclude_none=True) if hasattr(value, "model_dump") else value
