"""Concurrent questions are each answered and settled once, with few SQL statements and threads."""

import asyncio
import inspect
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import sqlalchemy as sa
from fastapi.params import Depends

from app.api import dependencies
from app.api.application import create_app
from app.db.tables.ledger import answer_citation, usage_event
from app.server.state import State
from tests.bench.ledger.client import Client, Reply
from tests.bench.service.library import questions_of
from tests.bench.service.served import serving
from tests.bench.service.stations import Stopwatch
from tests.statements import executions_of

_CHUNKS = 100
_ASKS = 60
_QUESTIONS = 10
_CLIENTS = 8
_MOST_STATEMENTS = 26
"""For one ask, from authentication to its citations. Beginnings and ends of transactions are not among them: how many
requests share a transaction depends on what else the machine does."""
_OF_TRANSACTIONS = ("BEGIN", "COMMIT", "ROLLBACK")
_REMEMBERED = ("FROM api_key", "FROM quota_override")
"""Keys and limits are read again after a time, whatever is asked meanwhile."""


def test_every_ask_is_answered_and_settled_once_with_few_statements(tmp_path: Path) -> None:
    questions = questions_of(None, _QUESTIONS)
    watch = Stopwatch()
    with serving(tmp_path / "data", chunks=_CHUNKS, small=True, watch=watch) as state:
        asyncio.run(_ask_all(state, questions))  # their vectors are remembered from here on
        with executions_of(state.database) as executed:
            replies = asyncio.run(_ask_all(state, [questions[number % _QUESTIONS] for number in range(_ASKS)]))
        with state.database.read() as connection:
            rows = connection.execute(
                sa.select(usage_event.c.request_id, usage_event.c.status, usage_event.c.operation)
            ).all()
            cited = set(connection.execute(sa.select(answer_citation.c.request_id)).scalars())
    assert {"authenticate.caller", "find", "fit", "dense.search_vector", "ledger.settle"} <= set(watch.told(_ASKS))
    answered = [reply.request_id for reply in replies if reply.status == 200]
    chats = [row.request_id for row in rows if row.operation == "chat" and row.status == "completed"]
    assert len(answered) == _ASKS
    assert sorted(chats) == sorted(set(chats)), "one settled row a request"
    assert set(answered) <= set(chats)
    assert set(answered) <= cited
    assert {row.status for row in rows} == {"completed"}, "nothing is left open"
    assert sum(row.operation == "embed_query" for row in rows) <= 2 * _QUESTIONS, "a known question calls no model"
    said = [statement for statement, _ in executed if not statement.startswith(_OF_TRANSACTIONS)]
    counted = Counter(one for one in said if not any(words in one for words in _REMEMBERED))
    assert counted.total() / _ASKS <= _MOST_STATEMENTS, counted


def test_what_routes_look_up_in_their_request_takes_no_thread() -> None:
    aliases = [getattr(alias, "__metadata__", ()) for alias in vars(dependencies).values()]
    found = [each.dependency for metadata in aliases for each in metadata if isinstance(each, Depends)]
    looked_up = [each for each in found if each is not None]

    assert {"principal_of", "models_of", "request_id"} <= {each.__name__ for each in looked_up}
    assert [each.__name__ for each in looked_up if not inspect.iscoroutinefunction(each)] == []


async def _ask_all(state: State, questions: list[str]) -> list[Reply]:
    app = create_app(lambda: nullcontext(state), version="0")
    left, replies = iter(questions), []

    async def ask(client: Client) -> None:
        for question in left:
            replies.append(await client.ask({"question": question, "stream": False}))

    async with app.router.lifespan_context(app):
        client = Client(app)
        await asyncio.gather(*(ask(client) for _ in range(_CLIENTS)))
    return replies
