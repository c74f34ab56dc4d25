"""The cases of the golden answers: each question in each answer mode, form and way that makes a difference."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.golden.application import Application
from tests.golden.ledger import settled_rows
from tests.golden.masking import Masks
from tests.golden.questions import QUESTIONS, Asked
from tests.golden.recording import Kept

FORMS = ("text", "markdown", "json")
_REPLY = "She is the **Aldey Star** [1]."
"""The assistant's turn in the history of a chat completion."""

WAYS: dict[str, dict[str, tuple[str, ...]]] = {
    "quotes": {
        "whole": FORMS,
        "stream": FORMS,
        "conversation": ("markdown", "json"),
        "dry-run": ("markdown",),
        "n3": ("markdown",),
        "chat": ("markdown",),
    },
    "default": {
        "whole": FORMS,
        "stream": FORMS,
        "conversation": ("markdown", "json"),
        "dry-run": ("markdown",),
        "n3": ("markdown", "json"),
        "chat": ("markdown",),
        "chat-stream": ("markdown",),
    },
    "generated": {
        "whole": FORMS,
        "stream": FORMS,
        "conversation": ("markdown",),
        "dry-run": ("markdown",),
        "n3": ("markdown",),
        "chat": ("json",),
        "chat-stream": ("markdown",),
    },
    # Strictness has no effect on JSON.
    "strict": {
        "whole": ("markdown",),
        "stream": ("text",),
        "conversation": ("markdown",),
        "n3": ("markdown",),
    },
    "models": {"stream": ("markdown",), "conversation": ("markdown",)},
}
"""The forms of each way in each mode. Chat completions have no plain text; a dry run is the same in every form."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question in one mode, form and way; `quick` says whether the quick test runs it."""

    asked: Asked
    mode: str
    form: str
    way: str
    quick: bool

    @property
    def name(self) -> str:
        """The readable name, as in `date-of-building/quotes/markdown/stream`."""
        return f"{self.asked.name}/{self.mode}/{self.form}/{self.way}"


def cases_of(mode: str) -> Iterator[Case]:
    """The cases of a mode. Quick is one of each question: form and way take turns, so that each pair is among them."""
    pairs = [(form, way) for way, forms in WAYS[mode].items() for form in forms]
    for row, asked in enumerate(QUESTIONS):
        for column, (form, way) in enumerate(pairs):
            quick = (row + column) % len(pairs) == 0
            yield Case(asked, mode, form, way, quick)


def kept(application: Application, case: Case) -> Kept:
    """What the application answers now."""
    application.start()
    masks = Masks()
    response, more = _ASKING[case.way](application, case)
    request_id = response.headers["x-request-id"]
    body = masks.text("\n".join((response.text, *more)))
    rows = settled_rows(application.state.database, request_id, outcome=response.is_success and case.way != "dry-run")
    return Kept(case.name, response.status_code, body, tuple(masks.row(*row) for row in rows))


_Asked = tuple[Any, tuple[str, ...]]
"""The response of the test client, and further lines to keep."""


def _ask(application: Application, case: Case, **fields: Any) -> _Asked:
    body = {"question": case.asked.text, "format": case.form, **fields}
    return application.http.post("/v1/ask", json=body), ()


def _stream(application: Application, case: Case) -> _Asked:
    return _ask(application, case, stream=True)


def _dry_run(application: Application, case: Case) -> _Asked:
    return _ask(application, case, dry_run=True)


def _conversation(application: Application, case: Case) -> _Asked:
    """The answer to the second question of a conversation, and the turn that the conversation keeps of it."""
    conversation = application.http.post("/v1/conversations", json={}).json()["id"]
    first = {"question": case.asked.before, "format": case.form, "conversation_id": conversation}
    assert application.http.post("/v1/ask", json=first).is_success, "the first question is answered"
    response, _ = _ask(application, case, conversation_id=conversation)
    turns = application.http.get(f"/v1/conversations/{conversation}").json()["data"]
    return response, (json.dumps(turns[-1], ensure_ascii=False),)


def _chat(application: Application, case: Case, **fields: Any) -> _Asked:
    history = [{"role": "user", "content": case.asked.before}, {"role": "assistant", "content": _REPLY}]
    return _completion(application, case, messages=history, **fields)


def _streamed_chat(application: Application, case: Case) -> _Asked:
    options = {"include_usage": True, "include_obfuscation": False}  # obfuscation is random
    return _chat(application, case, stream=True, stream_options=options)


def _three(application: Application, case: Case) -> _Asked:
    return _completion(application, case, messages=[], n=3)


def _completion(application: Application, case: Case, *, messages: list[dict[str, str]], **fields: Any) -> _Asked:
    form = {"type": "json_object" if case.form == "json" else "text"}
    asked = [*messages, {"role": "user", "content": case.asked.text}]
    body = {"model": "footnote", "messages": asked, "response_format": form, **fields}
    return application.http.post("/v1/chat/completions", json=body), ()


_ASKING: dict[str, Callable[[Application, Case], _Asked]] = {
    "whole": _ask,
    "stream": _stream,
    "conversation": _conversation,
    "dry-run": _dry_run,
    "n3": _three,
    "chat": _chat,
    "chat-stream": _streamed_chat,
}
