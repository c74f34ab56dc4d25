"""One call of a tool: its caller, its rights and limits, and its refusal.

A tool has the role, the reach and the admission control of the HTTP route with the same effect, by its row in the route
table. So a key can do no more here than there, and no less.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from fastapi import Request
from pydantic import BaseModel, ValidationError

from app.access.routes import AdmissionControl, refusal, rule_for
from app.api.dependencies import answer_deadline, principal_of, state_of
from app.api.errors import problem_of
from app.api.field_problems import FieldProblems
from app.api.root_path import route_path
from app.api.schemas.shape import RequestBody
from app.errors import Forbidden, InvalidRequest
from app.types import Principal

Report = Callable[[float, float | None, str], Awaitable[None]]
"""Tells the client of progress: how far, which grows from call to call; of how much, if that is known; a sentence."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool. `request` is the HTTP request that carries it, with the caller that the gate authenticated."""

    request: Request
    report: Report

    @property
    def address(self) -> str:
        """The server's address, as the client wrote it."""
        return str(self.request.base_url)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool: as text for a model, and the same as data."""

    text: str
    data: BaseModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool.

    Args:
        name: Its name.
        title: Its name for people.
        description: What it does, for a model.
        route: Method and path of the HTTP route with the same effect.
        arguments: What it takes.
        result: The type of its data.
        run: Runs it, once it is admitted.
        reads: Whether it changes nothing.
    """

    name: str
    title: str
    description: str
    route: tuple[str, str]
    arguments: type[RequestBody]
    result: type[BaseModel]
    run: Callable[[ToolCall, Any], Awaitable[ToolResult]]
    reads: bool = True

    def open_to(self, principal: Principal) -> bool:
        """Whether the caller may call it."""
        return refusal(principal, *self.route) is None

    async def called(self, call: ToolCall, arguments: Mapping[str, object]) -> ToolResult:
        """The result of a call.

        Raises:
            InvalidRequest: The arguments are not those of the tool.
            Forbidden: The caller's key does not allow it.
            RateLimited, ServerFull, DeadlinePassed: It is not admitted.
            AppError, RetrievalError, GenerationError, IngestionError: Those of the tool.
        """
        reason = refusal(await principal_of(call.request), *self.route)
        if reason is not None:
            raise Forbidden(reason)
        try:
            read = self.arguments.model_validate(arguments)
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)
            found = FieldProblems.of([{**item, "loc": ("body", *item["loc"])} for item in wrong])
            raise InvalidRequest(found.detail, param=found.param) from None
        async with _admitted(call.request, rule_for(*self.route).admission):
            return await self.run(call, read)


def problem_in(error: Exception, call: ToolCall) -> tuple[str, dict[str, object]]:
    """A refusal as a sentence for a model, and its problem document, as a route would send it.

    The request counts as failed, so that its response is not stored under its idempotency key.
    """
    context = call.request.scope["state"]
    context["failed"] = True
    _, body, headers = problem_of(error, context["request_id"], path=route_path(call.request.scope))
    wait = headers.get("Retry-After")
    sentence = str(body["detail"])
    return (f"{sentence} Try again in {wait} s." if wait is not None else sentence), body


@asynccontextmanager
async def _admitted(request: Request, control: AdmissionControl) -> AsyncIterator[None]:
    """Count a call against the caller's limits, and hold its slots."""
    if control is AdmissionControl.NONE:
        yield
        return
    admission, principal = state_of(request).limits.admission, await principal_of(request)
    await admission.refresh()
    request.scope["state"]["limit_states"] = partial(admission.limit_states, principal)
    if control is AdmissionControl.RATE_LIMITS:
        async with admission.counted(principal):
            yield
        return
    async with admission.entered(
        principal,
        generates=control is AdmissionControl.GENERATION,
        deadline=await answer_deadline(request),
        body=_already_read,
        gone=anyio.sleep_forever,  # a client that leaves cancels the whole call
    ):
        yield


async def _already_read() -> None:
    return None
