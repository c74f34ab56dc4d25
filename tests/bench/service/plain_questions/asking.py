"""A server that is asked: the library's upload, and each question with the time it took."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.bench.service.plain_questions.questions import Question
from tests.server import Server

_INDEXING_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the body of its response, with the wall-clock seconds it took."""

    question: Question
    body: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class Way:
    """A configuration of the server: its name, and the settings that differ from the defaults."""

    name: str
    settings: Mapping[str, str]

    @classmethod
    def of(cls, name: str) -> "Way":
        """A generator, or `default`, and further settings: `default+unconfirmed=keep`.

        Raises:
            ValueError: A further setting has no value.
        """
        generator, *others = name.split("+")
        settings = {} if generator == "default" else {"generator": generator}
        for other in others:
            key, equals, value = other.partition("=")
            if not equals:
                raise ValueError(f"no value: {other}")
            settings[key] = value
        return cls(name, settings)


def upload(server: Server, folder: Path, documents: Iterable[str]) -> dict[str, str]:
    """The ids of the documents by their paths below `folder`, once all are indexed."""
    ids: dict[str, str] = {}
    for document in documents:
        file = folder / document
        ids[document] = server.upload(file.name, file.read_bytes(), wait=0)["id"]
    for document, id_ in ids.items():
        status = server.settled(id_, seconds=_INDEXING_SECONDS)["status"]
        assert status == "indexed", f"{document} is {status}"
    return ids


def ask_all(server: Server, questions: Sequence[Question]) -> tuple[list[Asked], float]:
    """Every question asked of the whole library, one after another, and the server's processor seconds for all."""
    asked: list[Asked] = []
    before = _processor_seconds(server.pid)
    for question in questions:
        started = time.perf_counter()
        response = server.http.post("/v1/ask", json={"question": question.text, "stream": False})
        seconds = time.perf_counter() - started
        assert response.status_code == 200, response.text
        asked.append(Asked(question, response.json(), seconds))
    return asked, _processor_seconds(server.pid) - before


def _processor_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)
