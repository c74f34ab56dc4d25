"""Asks a question whose caller does not wait for it, in a thread without an event loop, after what requests ask.

It goes the way of every question. It ends early where the process stops, or nobody needs its answer any more.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from app.answering.answerer import Answerer, Unless
from app.answering.answers.answer import Answer
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.errors import AppError
from generation.errors import GenerationError
from retrieval.errors import RetrievalError

_LOOK_S = 0.1
_YIELDING_S = 10.0  # the longest wait while answers of requests are being prepared
_TOLD = (AppError, GenerationError, RetrievalError)


def ask_unattended(
    answerer: Answerer,
    question: Question,
    *,
    meter: Meter | None = None,
    unless: Unless | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Answer | None:
    """The whole answer; None where `stopping` said so before there was one.

    Args:
        answerer: Answers it.
        question: The question, with the principal who pays.
        meter: The question's.
        unless: As of `Answerer.open`: whether it is not to be answered, by its sources.
        stopping: Checked ten times a second.

    Raises:
        Exception: As `OpenAnswer.begun`; nothing is left running.
    """
    return asyncio.run(_whole(answerer, question, meter, unless, stopping))


async def _whole(
    answerer: Answerer,
    question: Question,
    meter: Meter | None,
    unless: Unless | None,
    stopping: Callable[[], bool],
) -> Answer | None:
    answer = answerer.open(question, meter=meter, unless=unless)
    whole = asyncio.ensure_future(answer.whole())
    try:
        while not whole.done():
            if stopping():
                return None
            await asyncio.wait({whole}, timeout=_LOOK_S)
        return whole.result()
    finally:
        answer.close()
        if not whole.done():
            whole.cancel()
            await asyncio.wait({whole})


def yield_to_requests(
    answerer: Answerer, *, stopping: Callable[[], bool], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait while answers of requests are being prepared, for ten seconds at most."""
    deadline = time.monotonic() + _YIELDING_S
    while len(answerer.running) and time.monotonic() < deadline and not stopping():
        sleep(_LOOK_S)


def told(error: Exception) -> str | None:
    """The message of an error that may be shown to the caller; None where it may not."""
    return str(error) if isinstance(error, _TOLD) else None


def kept_answer(answer: Answer, *, at: float) -> dict[str, Any]:
    """An answer as it is kept, in JSON types; `at` is its time, Unix seconds."""
    citations = (asdict(citation) for citation in answer.citations)
    return {
        "id": answer.id,
        "answered": answer.reason is None and bool(answer.citations),
        "reason": answer.reason,
        "answer": answer.text,
        "model": answer.model,
        "citations": [{name: one[name] for name in one if name != "current_version"} for one in citations],
        "created_at": at,
    }
