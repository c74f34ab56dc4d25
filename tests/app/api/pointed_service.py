"""The application over a scripted engine, a fixed search of two passages, and a reader that points at some words."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from app.server.state import State
from generation.tokenizer import ChatTokenizer
from retrieval.search import Search
from tests.app.answering.pointing_reader import PointingReader
from tests.app.api.conftest import client_of
from tests.app.api.openai.test_response_format import FixedSearch, ScriptedEngine
from tests.app.api.test_reader import Service, hits
from tests.app.server.stations import state_with, stations
from tests.generation.tiny import tiny_tokenizer


@contextmanager
def pointed_service(
    state: State, says: str, *, points_at: str | None = "forty ships", **options: Any
) -> Iterator[Service]:
    """Serve an engine that says one text; without `points_at` there is no reader. `options` are those of `stations`."""
    engine = ScriptedEngine(says)
    models = stations(
        state,
        engine,
        tokenizer=cast(Any, ChatTokenizer(tiny_tokenizer())),
        search=cast(Search, FixedSearch(hits())),
        reader=None if points_at is None else PointingReader(points_at),
        **options,
    )
    with client_of(state_with(state, models=models)) as client:
        yield Service(client, engine, state)
