"""Special cases that end early: cancelled, left by the client, late, and without a budget, each at a known point."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from tests.app.api.caller import Caller
from tests.generation.fakes import wait_until
from tests.golden.application import Application
from tests.golden.ledger import settled_rows
from tests.golden.masking import Masks
from tests.golden.recording import Kept
from tests.golden.script import LAST, Gate, Script
from tests.golden.specials import QUESTION, asked_as


@dataclass(frozen=True, slots=True)
class Point:
    """A moment of an answer: at a gate of a scripted model, or before a delta of the engine.

    A search is not interrupted, so a gate that is passed `before` it ends opens as soon as the answer was cancelled.
    """

    name: str
    modes: tuple[str, ...]
    gate: Callable[[Application], Gate] | None = None
    delta: int | None = None
    searching: bool = False


_WORDS = ("generated", "strict")
POINTS = (
    Point("before-sources", ("quotes", "generated"), lambda on: on.models.embedder.before_query, searching=True),
    Point("while-reading", ("quotes", "default", "generated"), lambda on: on.models.reader.gate),
    Point("while-extracting", ("quotes", "generated"), lambda on: on.models.embedder.before_documents),
    Point("before-the-first-delta", _WORDS, delta=0),
    Point("amid-the-deltas", _WORDS, delta=2),
    Point("behind-the-last-delta", _WORDS, delta=LAST),
)
_WAYS = {"cancelled": ("whole", "stream", "turn", "chat", "chat-stream"), "left": ("whole", "stream", "turn")}

Keep = Callable[[Application], Kept]


def interruptions_of(mode: str) -> Iterator[tuple[str, Keep]]:
    """The interrupted cases of a mode by name."""
    for point in POINTS:
        if mode in point.modes:
            for how, ways in _WAYS.items():
                for way in ways:
                    name = f"{how}-{point.name}/{mode}/{way}"
                    yield (
                        name,
                        _interrupted(
                            name,
                            point,
                            way,
                            leaves=how == "left",
                            early=mode != "generated" and way in {"stream", "turn"},
                        ),
                    )
    if mode in {"quotes", "default", "generated"}:
        for way in ("whole", "stream", "chat", "chat-stream"):
            for limit in (0, 20, 600):
                name = f"budget-of-{limit}/{mode}/{way}"
                yield name, _without_budget(name, limit, way)
            name = f"reader-broke/{mode}/{way}"
            early = way == "stream" and mode != "generated"
            yield name, _broken_behind_sources(name) if early else _plain(name, way, breaks=True)
        yield f"cancelled-afterwards/{mode}/whole", _afterwards(f"cancelled-afterwards/{mode}/whole")
        yield f"three-streamed/{mode}/chat-stream", _three(f"three-streamed/{mode}/chat-stream")


def late_cases(mode: str) -> Iterator[tuple[str, Keep]]:
    """Cases of an application whose deadline has passed before an answer begins."""
    for way in ("whole", "stream", "chat", "chat-stream"):
        name = f"late-at-once/{mode}/{way}"
        yield name, _plain(name, way)


def _interrupted(name: str, point: Point, way: str, *, leaves: bool, early: bool) -> Keep:
    """An answer that is cancelled at a point, or that its client leaves; `early` sources are sent before a gate."""

    def keep(application: Application) -> Kept:
        application.start(Script(holds_at=point.delta))
        fields: dict[str, Any] = {}
        if way == "turn":
            fields["conversation_id"] = application.http.post("/v1/conversations", json={}).json()["id"]
        path, body = asked_as(QUESTION, "stream" if way == "turn" else way, fields)
        caller = Caller(cast(Any, application), path=path, body=json.dumps(body).encode())
        gate = None if point.gate is None else point.gate(application)
        if gate is not None:
            gate.shut()
        running = application.portal.start_task_soon(caller)
        reached = application.models.engine.held if gate is None else gate.reached
        assert reached.wait(30), f"{name}: the point was never reached"
        if gate is not None and not point.searching and early:
            wait_until(lambda: b"event: sources" in caller.received)
        if leaves:
            caller.hang_up()
        else:
            cancelled = application.http.post(f"/v1/requests/{caller.request_id}/cancel")
            assert cancelled.json() == {"cancelled": True}, cancelled.text
        if gate is not None and point.searching and not leaves:
            gate.free()
        running.result(30)
        if gate is not None:
            gate.free()
        wait_until(lambda: application.idle)
        turns = ""
        if way == "turn":
            kept = application.http.get(f"/v1/conversations/{fields['conversation_id']}").json()["data"]
            turns = f"\n{json.dumps(kept, ensure_ascii=False)}"
        return _kept(
            application, name, caller.status or 0, caller.received.decode() + turns, caller.request_id, ended=True
        )

    return keep


def _without_budget(name: str, limit: int, way: str) -> Keep:
    """A budget of so many tokens: none, enough for the question's embedding, or enough to read passages."""

    def keep(application: Application) -> Kept:
        budget = {"limit": limit, "unit": "tokens", "period": "total"}
        made = application.http.post("/v1/admin/budgets", json=budget).json()["id"]
        try:
            return _plain(name, way)(application)
        finally:
            application.http.delete(f"/v1/admin/budgets/{made}")

    return keep


def _broken_behind_sources(name: str) -> Keep:
    """A reader that breaks when the sources were sent; one that breaks at once may do so before or after that."""

    def keep(application: Application) -> Kept:
        application.start()
        reader = application.models.reader
        reader.breaks = True
        reader.gate.shut()
        path, body = asked_as(QUESTION, "stream", {})
        caller = Caller(cast(Any, application), path=path, body=json.dumps(body).encode())
        running = application.portal.start_task_soon(caller)
        wait_until(lambda: b"event: sources" in caller.received)
        reader.gate.free()
        running.result(30)
        return _kept(application, name, caller.status or 0, caller.received.decode(), caller.request_id, ended=True)

    return keep


def _plain(name: str, way: str, *, breaks: bool = False) -> Keep:
    def keep(application: Application) -> Kept:
        application.start()
        application.models.reader.breaks = breaks
        path, body = asked_as(QUESTION, way, {})
        response = application.http.post(path, json=body)
        request_id = response.headers["x-request-id"]
        refused = response.status_code == 429
        return _kept(application, name, response.status_code, response.text, request_id, ended=not refused)

    return keep


def _afterwards(name: str) -> Keep:
    """The cancellation of an answer that has ended."""

    def keep(application: Application) -> Kept:
        application.start()
        answered = application.http.post("/v1/ask", json={"question": QUESTION}).headers["x-request-id"]
        refused = application.http.post(f"/v1/requests/{answered}/cancel")
        return _kept(application, name, refused.status_code, refused.text, answered, ended=True)

    return keep


def _three(name: str) -> Keep:
    """Three streamed choices, the chunks of each in their order: how they alternate is chance."""

    def keep(application: Application) -> Kept:
        application.start()
        path, body = asked_as(QUESTION, "chat-stream", {"n": 3})
        response = application.http.post(path, json=body)
        chunks = response.text.split("\n\n")
        ordered = "\n\n".join(sorted(chunks, key=_choice))
        return _kept(
            application,
            name,
            response.status_code,
            ordered,
            response.headers["x-request-id"],
            ended=True,
            in_order=False,
        )

    return keep


def _choice(chunk: str) -> int:
    """The number of the choice that a chunk is of; the last chunks are of none."""
    data = chunk.removeprefix("data: ")
    choices = json.loads(data)["choices"] if data.startswith("{") else []
    return int(choices[0]["index"]) if choices else 1000


def _kept(
    application: Application, name: str, status: int, body: str, request_id: str, *, ended: bool, in_order: bool = True
) -> Kept:
    masks = Masks()
    text = masks.text(body)
    rows = settled_rows(application.state.database, request_id, outcome=ended)
    masked = [masks.row(*row) for row in rows]
    return Kept(name, status, text, tuple(masked if in_order else sorted(masked, key=json.dumps)))
