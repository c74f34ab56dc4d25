"""The whole application under uvicorn on a loopback port, its model and embedder small, its worker running."""

import asyncio
import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import uvicorn

from app.answering.conversations.conversations import Conversations
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.api.application import create_app
from app.db.answer_citations import AnswerCitationRepository
from app.db.chunks import ChunkRepository
from app.server.process import freeze_loaded_objects
from app.server.state import State
from app.types import Principal, Role
from ingestion.extraction import LocalExtractor
from retrieval.search import Search
from tests.app.answering.answerers import make_answerer
from tests.app.server.stations import ANY_EVIDENCE, state_with
from tests.faults.metered import metered, scripted
from tests.loop_watch import ElsewhereExtractor, LoopWatch, WorkElsewhere
from tests.server import ADMIN_KEY

TEXTS = {
    "harbour.txt": "The keeper counted forty ships in the harbour. Eleven of them carried salt, two carried letters.",
    "mill.txt": "A mill at the river grinds rye on Mondays. Its wheel was mended in 1912 by Ann Carver.",
}


@dataclass(frozen=True, slots=True)
class Served:
    """A running application."""

    url: str
    state: State
    watch: LoopWatch

    def key(self, role: Role, *, tenant_id: str | None = None) -> str:
        """The secret of a new key, in the administrator's tenant unless another is named."""
        if role is Role.ADMIN and tenant_id is None:
            return ADMIN_KEY
        tenant = tenant_id or self._principal(ADMIN_KEY).tenant_id
        _, secret = self.state.access.keys.create(
            tenant_id=tenant, user_id="ann", name="fuzz", role=role, collections=None, expires_at=None
        )
        return secret

    def ids_of(self, secret: str) -> frozenset[str]:
        """Of the key, its user and its tenant."""
        principal = self._principal(secret)
        return frozenset({principal.key_id, principal.user_id, principal.tenant_id})

    def _principal(self, secret: str) -> Principal:
        principal = self.state.access.keys.authenticate(secret)
        assert principal is not None, "the key was just made"
        return principal


@contextmanager
def served(data_dir: Path) -> Iterator[Served]:
    """Serve an application over `data_dir` that holds two indexed documents; stopped at the end."""
    lenient: dict[str, Any] = {"failed_logins_per_minute": 1_000_000}  # every operation is also called with a wrong key
    elsewhere = WorkElsewhere()
    extractor = ElsewhereExtractor(LocalExtractor(), elsewhere)
    with metered(data_dir, engine=scripted(step_seconds=0), extractor=extractor, **lenient) as metered_state:
        state = _conversing(metered_state)
        config = uvicorn.Config(
            create_app(lambda: nullcontext(state), version="0"),
            http="h11",
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=5,
        )
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
            # connections inherit it; without it a body waits 40 ms for an acknowledgement of its headers
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            watches: Queue[LoopWatch] = Queue()

            async def serve() -> None:
                with LoopWatch(asyncio.get_running_loop(), elsewhere=elsewhere).watching() as watch:
                    watches.put(watch)
                    await server.serve(sockets=[listener])

            thread = threading.Thread(target=asyncio.run, args=(serve(),), name="fuzzed")
            thread.start()
            try:
                url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                _fill(url)
                watch = watches.get(timeout=30)
                with _collecting_rarely():
                    watch.forget()
                    yield Served(url, state, watch)
            finally:
                server.should_exit = True
                thread.join(30)
        assert not thread.is_alive(), "the server did not end"


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """As in a server: a collection of all that a test process holds would stop the loop."""
    before = gc.get_threshold()
    freeze_loaded_objects()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _conversing(state: State) -> State:
    """`state` with answers that remember conversations and what they cited, as `serve` has them."""
    models = state.serving.models
    assert models is not None, "metered() loads them"
    search = Search(models.index, models.lexical, ChunkRepository(state.database))
    answerer = make_answerer(
        finder=Finder(search=search, vectors=QuestionVectors(models.embedder)),
        engine=models.engine,
        tokenizer=models.tokenizer,
        contents=state.corpus.contents,
        ledger=state.usage.ledger,
        limits=ANY_EVIDENCE,
        conversations=Conversations(
            state.history.conversations, count_tokens=models.tokenizer.count, history_tokens=500
        ),
        citations=AnswerCitationRepository(state.database, clock=state.usage.ledger.seconds),
    )
    return state_with(state, models=replace(models, answerer=answerer))


def _fill(url: str) -> None:
    deadline = time.monotonic() + 60
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {ADMIN_KEY}"}, timeout=60, trust_env=False
    ) as http:
        while not _listening(http):
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.02)
        for name, text in TEXTS.items():
            response = http.post("/v1/documents", json={"text": text, "filename": name, "wait": 30})
            assert response.json()["status"] == "indexed", response.text


def _listening(http: httpx.Client) -> bool:
    try:
        return http.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False
