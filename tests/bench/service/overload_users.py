"""locust's users for `overload`: they ask, stream and search with the keys they are given, and write down what came.

Run by `overload`, which says by the environment variable `OVERLOAD` what to do: JSON with `keys` (secrets, as often
as they are to be used), `every` (seconds between two requests of one user; 0: as soon as it has its answer), `length`
(tokens of an answer) and `out` (where each request becomes a line: kind, key, status, begun, seconds, ended well).
"""

import gc
import itertools
import json
import os
import random
import time
from pathlib import Path
from typing import Any, ClassVar

from locust import FastHttpUser, events

_PLAN: dict[str, Any] = json.loads(os.environ["OVERLOAD"])
_QUESTION = "How many ships did the keeper count?"
_LAST_EVENTS = ("event: done", "event: error", "data: [DONE]")

_numbers = itertools.count()
_lines: list[str] = []


def _write_down(**_: Any) -> None:
    Path(_PLAN["out"]).write_text("".join(_lines), encoding="utf-8")


def _stop_collecting(**_: Any) -> None:
    """A pause of the load generator's own would be counted as the server's."""
    gc.collect()
    gc.freeze()
    gc.disable()


events.quitting.add_listener(_write_down)
events.test_start.add_listener(_stop_collecting)


class Asker(FastHttpUser):  # type: ignore[misc]
    """One client with one connection and one key."""

    network_timeout = connection_timeout = 120.0

    def on_start(self) -> None:
        """Take the next key, and begin at a moment of its own."""
        self._key = next(_numbers) % len(_PLAN["keys"])
        self.client.auth_header = None
        self._headers = {"Authorization": f"Bearer {_PLAN['keys'][self._key]}"}
        time.sleep(random.random() * _PLAN["every"])

    def wait_time(self) -> float:
        """Seconds until the next request, such that it begins `every` seconds after this one where it can."""
        return float(max(0.0, self._begun + _PLAN["every"] - time.perf_counter()))

    def ask_and_read_along(self) -> None:
        """A streamed ask."""
        self._send("stream", "/v1/ask", {"question": _QUESTION, "stream": True, **_ask()})

    def ask(self) -> None:
        """An ask."""
        self._send("ask", "/v1/ask", {"question": _QUESTION, **_ask()})

    def chat(self) -> None:
        """A streamed chat completion."""
        messages = [{"role": "user", "content": _QUESTION}]
        body = {"model": "footnote", "messages": messages, "stream": True, "max_tokens": _PLAN["length"]}
        self._send("chat", "/v1/chat/completions", body)

    def search(self) -> None:
        """A search."""
        self._send("search", "/v1/search", {"query": _QUESTION})

    tasks: ClassVar = {ask_and_read_along: 6, ask: 2, chat: 1, search: 1}

    def _send(self, kind: str, path: str, body: dict[str, Any]) -> None:
        self._begun = time.perf_counter()
        begun = time.time()
        with self.client.post(path, json=body, headers=self._headers, name=kind, catch_response=True) as response:
            status, text = response.status_code, response.text or ""
            response.success()  # what counts as one is decided by who reads the lines
        streamed = status == 200 and kind in {"stream", "chat"}
        whole = status != 0 and (not streamed or any(last in text[-4000:] for last in _LAST_EVENTS))
        seconds = time.perf_counter() - self._begun
        _lines.append(json.dumps([kind, self._key, status, begun, seconds, whole, _reason(status, text)]) + "\n")


def _ask() -> dict[str, Any]:
    return {"max_output_tokens": _PLAN["length"], "on_no_evidence": "answer"}


def _reason(status: int, text: str) -> str:
    """Of an answer that is none: the problem's title."""
    if status == 200:
        return ""
    try:
        body = json.loads(text)
    except ValueError:
        return text[:80]
    return str(body.get("title") or body.get("error", {}).get("type", ""))
