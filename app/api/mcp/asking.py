"""The tool that answers a question, and tells of its progress."""

import time
from contextlib import aclosing
from dataclasses import replace

import anyio
from pydantic import Field

from app.answering.answers.answer import Answer, QuotesFound, SourcesFound, TextDelta
from app.api.answers import question_of
from app.api.dependencies import answer_deadline, models_of, principal_of, request_id, state_of
from app.api.errors import failure_of
from app.api.mcp.calls import Report, Tool, ToolCall, ToolResult
from app.api.mcp.passages import Answered, cited, listed
from app.api.mcp.reading import ONLY_IN, scope_fields
from app.api.schemas.answers import AnswerBody, AskRequest
from app.api.schemas.bounds import MOST_QUESTION, Described
from app.api.schemas.bounds import Id as Name
from app.api.schemas.search import FILTER
from app.api.schemas.shape import RequestBody

_BETWEEN_REPORTS_S = 0.5  # of an answer that is being written


class AskArguments(RequestBody):
    """Arguments of `ask`."""

    question: str = Field(min_length=1, max_length=MOST_QUESTION, description="A question that stands alone.")
    collection: Name | None = Field(default=None, description=ONLY_IN)
    top_k: int = Field(default=8, ge=1, le=50, description="How many passages are read for the answer.")
    filter: Described | None = Field(default=None, description=FILTER)


class _AnswerProgress:
    """Progress of one answer: the steps of its beginning, then the characters that are written."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._told = 0.0
        self._characters = 0
        self._last = 0.0

    async def step(self, sentence: str) -> None:
        """A step is done."""
        self._told += 1
        await self._report(self._told, None, sentence)

    async def written(self, text: str) -> None:
        """A piece of the answer is written; told at most twice a second."""
        self._characters += len(text)
        now = time.monotonic()
        if now - self._last >= _BETWEEN_REPORTS_S:
            self._last = now
            await self.step(f"{self._characters} characters are written.")


async def _ask(call: ToolCall, given: AskArguments) -> ToolResult:
    state, principal = state_of(call.request), await principal_of(call.request)
    answerer, named = (await models_of(call.request)).answerer, await request_id(call.request)

    def asked() -> AskRequest:
        scope = scope_fields(state.corpus, principal, collection=given.collection, conditions=given.filter)
        return AskRequest.model_validate({"question": given.question, "top_k": given.top_k, **scope})

    body = await anyio.to_thread.run_sync(asked)
    question = await anyio.to_thread.run_sync(
        lambda: question_of(body, state.corpus, state.settings, principal, named, "mcp.ask")
    )
    opened = answerer.open(replace(question, deadline=await answer_deadline(call.request)))
    progress = _AnswerProgress(call.report)
    answer: Answer | None = None
    async with aclosing(opened.events()) as events:
        async for event in events:
            match event:
                case SourcesFound():
                    await progress.step(f"{len(event.sources)} passages are read.")
                case QuotesFound():
                    await progress.step("Quotes are found; an answer is written.")
                case TextDelta():
                    await progress.written(event.text)
                case Answer():
                    answer = event
    assert answer is not None, "an answer's events end with the answer"
    if (failure := failure_of(answer)) is not None:
        raise failure
    told = AnswerBody.of(answer)
    quotes = cited([each.model_dump() for each in told.citations], base=call.address)
    data = Answered(answered=told.answered, reason=told.reason, text=told.answer, citations=quotes, request_id=told.id)
    return ToolResult("\n\n".join(part for part in (told.answer, listed(quotes)) if part), data)


ASK = Tool(
    name="ask",
    title="Ask documents",
    description="Answer a question from the user's documents alone. Returns the answer, as a rule in quotes of the "
    "documents, with markers [1], [2] and the exact passages they name, each with its file and page, and whether it "
    "was verified. Says so when the documents do not answer, or not clearly.",
    route=("POST", "/v1/ask"),
    arguments=AskArguments,
    result=Answered,
    run=_ask,
)
"""The tool that answers a question."""
