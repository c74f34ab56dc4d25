"""The application with documents, prices and conversations, and receipts of what it answered."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from fastapi.testclient import TestClient

from app.answering.conversations.conversations import Conversations
from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.db.chunks import ChunkRepository
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.telemetry.timing import timed
from retrieval.search import Search
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.answering.pointing_reader import PointingReader
from tests.app.api.conftest import ADMIN_KEY, client_of
from tests.app.server.stations import ANY_EVIDENCE, LIMITS, state_with, stations
from tests.faults.metered import scripted
from tests.generation.fakes import LetterTokenizer
from tests.installation import installed
from tests.retrieval.fakes import TopicEmbedder

QUESTION = "How many ships did the harbour master log?"
FOLLOW_UP = "And how many ships were logged in June?"
OFF_TOPIC = "Which enzyme splits lactose in milk?"
SHIPS = "The harbour master logged forty ships in May. Nobody counted them in June. He retired in July.\n"
SAYS = "The harbour master logged forty ships in May [1]."
GENERATING, QUOTING = "generating", "quoting"


@dataclass(frozen=True, slots=True)
class Receipted:
    """A server twice over the same data: one whose model words answers, and one that quotes."""

    state: State
    clients: Mapping[str, TestClient]

    @property
    def client(self) -> TestClient:
        return self.clients[GENERATING]

    def upload(self, text: str = SHIPS, name: str = "ships.txt", **fields: Any) -> str:
        body = self.client.post("/v1/documents", json={"text": text, "filename": name, "wait": 20, **fields}).json()
        assert body["status"] == "indexed", body
        return str(body["id"])

    def conversation(self, **headers: Any) -> str:
        return str(self.client.post("/v1/conversations", **headers).json()["id"])

    def ask(self, question: str = QUESTION, *, by: str = GENERATING, headers: Any = None, **fields: Any) -> Any:
        body = {"question": question, "conversation_id": self.conversation(headers=headers), **fields}
        response = self.clients[by].post("/v1/ask", json=body, headers=headers)
        assert response.status_code == 200, response.text
        return response.json()

    def receipt(self, request_id: str, **headers: Any) -> dict[str, Any]:
        response = self.client.get(f"/v1/answers/{request_id}/receipt", **headers)
        assert response.status_code == 200, response.text
        return cast(dict[str, Any], response.json())

    def price(self) -> None:
        """Give all models prices, from the beginning of time."""
        inputs = [(model, "input") for model in ("scripted", "pointing")]
        for model, meter in [*inputs, ("scripted", "output"), ("hashing", "embedding")]:
            body = {"model": model, "meter": meter, "price_per_million": "0.15", "effective_from": 0}
            response = self.client.post("/v1/admin/prices", json=body)
            assert response.status_code == 201, response.text

    def keys(self) -> bytes:
        return self.client.get("/.well-known/footnote-keys.json", headers={"Authorization": ""}).content


@contextmanager
def receipted(data_dir: Path, *, priced: bool = True) -> Iterator[Receipted]:
    """Serve an application without documents; all its models have prices, unless it is told otherwise."""
    settings = Settings(data_dir=installed(data_dir), admin_key=ADMIN_KEY, _env_file=None)
    with ExitStack() as stack:
        state = stack.enter_context(build(settings, with_models=False))
        engine, embedder = scripted(says=SAYS), TopicEmbedder("ship")
        stack.callback(engine.close)
        models = stations(state, engine, embedder=embedder, limits=ANY_EVIDENCE, remembers=True)
        ledger, tokenizer = state.usage.ledger, LetterTokenizer()
        found = Search(models.index, models.lexical, ChunkRepository(state.database), timed=timed)
        quoter = make_answerer(
            finder=Finder(search=found, vectors=QuestionVectors(embedder)),
            engine=engine,
            tokenizer=tokenizer,
            contents=state.corpus.contents,
            ledger=ledger,
            limits=LIMITS,
            passage_reader=PassageReader(embedder=embedder, reader=PointingReader("forty ships", asked="How many")),
            quotes=QuotesAs.ONLY,
            conversations=Conversations(state.history.conversations, count_tokens=tokenizer.count, history_tokens=500),
        )
        quoting = replace(models, answerer=quoter)
        state.serving.install(models)
        models.worker.start()
        stack.callback(models.worker.stop)
        clients = {
            name: stack.enter_context(client_of(state_with(state, models=of)))
            for name, of in ((GENERATING, models), (QUOTING, quoting))
        }
        served = Receipted(state, clients)
        if priced:
            served.price()
        yield served


def written(receipt: Mapping[str, Any]) -> bytes:
    return json.dumps(receipt).encode()
