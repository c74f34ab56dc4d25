"""A server whose engine follows a script, for tests of conversations."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, cast

import pytest

from app.answering.conversations.conversations import Conversations
from app.answering.question import AnswerDefaults
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.answering.understanding.catalogue_replies import CatalogueReplies
from app.answering.understanding.documents.meant import DocumentsMeant
from app.answering.understanding.followup.model import Rewriter
from app.db.catalogue import CatalogueRepository
from app.db.conversations import ConversationRepository
from app.server.state import State
from app.usage.ledger.ledger import Ledger
from generation.ports import Engine, Observer
from generation.types import FinishReason, GenerationRequest, ModelInfo
from retrieval.errors import RetrievalError
from retrieval.ports import Vectors
from retrieval.search import Search
from retrieval.types import Hit, Scope, SearchMode
from tests.app.answering.answerers import make_answerer
from tests.app.answering.generating.test_summaries import HITS, FinishedStream
from tests.app.answering.idle_engine import IdleEngine
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.api.conftest import client_of
from tests.app.server.stations import state_with, stations
from tests.retrieval.fakes import HashingEmbedder

ANSWER = "Every ship of the northern line was painted blue."


FIRST = "What colour were the ships of the Northern Line?"


SECOND = "How large were they?"


STANDALONE = "How large were the ships of the Northern Line?"


BROKEN = "What broke the search?"


class TalkingEngine(IdleEngine):
    """Implements `Engine`: says one thing to questions, another to rewritings."""

    def __init__(
        self, *, says: str = ANSWER, reason: FinishReason = FinishReason.STOP, rewrites: str = STANDALONE
    ) -> None:
        self.info = ModelInfo(model="scripted", revision="0", context_window=9000, device="cpu", dtype="float32")
        self.says, self.reason, self.rewrites = says, reason, rewrites
        self.requests: list[GenerationRequest] = []

    def submit(self, request: GenerationRequest, *, observer: Observer) -> FinishedStream:
        self.requests.append(request)
        if request.id.endswith(":0"):
            cut = len(self.rewrites) > request.sampling.max_tokens
            reason = FinishReason.LENGTH if cut else FinishReason.STOP
            return FinishedStream(request, self.rewrites[: request.sampling.max_tokens], reason, observer)
        return FinishedStream(request, self.says, self.reason, observer)


class RecordingSearch:
    """Finds the same hits whatever is asked, those in scope, and remembers what was asked of all documents."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def search(
        self, question: str, *, scope: Scope, top_k: int, mode: SearchMode, vector: Callable[[], Vectors]
    ) -> tuple[Hit, ...]:
        vector()
        if scope.document_ids is None:
            self.questions.append(question)
        if question == BROKEN:
            raise RetrievalError("Broken.")
        return tuple(one for one in HITS if scope.document_ids is None or one.chunk.document_id in scope.document_ids)


class Served:
    """An application over a scripted engine."""

    def __init__(
        self,
        state: State,
        engine: TalkingEngine,
        *,
        history_tokens: int,
        model: bool,
        repository: ConversationRepository | None = None,
    ) -> None:
        tokenizer, ledger = CharacterTokenizer(), Ledger(state.database, boot_id="boot")
        self.engine, self.search, self.ledger, self.state = engine, RecordingSearch(), ledger, state
        rewriter = Rewriter(tokenizer=tokenizer)
        catalogue = CatalogueRepository(state.database)
        self.answerer = make_answerer(
            finder=Finder(search=cast(Search, self.search), vectors=QuestionVectors(HashingEmbedder(max_tokens=64))),
            engine=cast(Engine, engine),
            tokenizer=tokenizer,
            contents=state.corpus.contents,
            ledger=ledger,
            limits=AnswerDefaults(max_context_tokens=900, max_output_tokens=200, min_evidence=-1.0, max_waiting=4),
            conversations=Conversations(
                repository or state.history.conversations,
                count_tokens=tokenizer.count,
                history_tokens=history_tokens,
                asked=state.history.asked,
            ),
            rewriter=rewriter if model else None,
            replies=CatalogueReplies(catalogue, DocumentsMeant(catalogue)),
        )
        models = replace(stations(state, cast(Engine, engine), tokenizer=tokenizer), answerer=self.answerer)
        self.client = client_of(state_with(state, models=models))

    def begin(self, **body: object) -> str:
        response = self.client.post("/v1/conversations", json=body)
        assert response.status_code == 201
        return str(response.json()["id"])

    def ask(self, question: str, conversation_id: str | None, **fields: object) -> dict[str, Any]:
        body = {"question": question, "conversation_id": conversation_id, **fields}
        response = self.client.post("/v1/ask", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def turns(self, conversation_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get(f"/v1/conversations/{conversation_id}").json()["data"]
        return found


@pytest.fixture
def serve(state: State) -> Iterator[Callable[..., Served]]:
    with ExitStack() as stack:

        def start(
            engine: TalkingEngine | None = None,
            *,
            history_tokens: int = 500,
            model: bool = False,
            repository: ConversationRepository | None = None,
        ) -> Served:
            served = Served(
                state,
                engine or TalkingEngine(),
                history_tokens=history_tokens,
                model=model,
                repository=repository,
            )
            stack.enter_context(served.client)
            return served

        yield start
