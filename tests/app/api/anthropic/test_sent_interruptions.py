"""A question about documents that were sent is cancelled while their passages are embedded."""

import asyncio
from collections.abc import Callable, Sequence

from app.answering.answers.parts import Reason
from app.answering.question import Question
from app.documents.inline_library import SentDocument
from app.models.extractive import NoEngine
from app.server.state import State
from app.types import Operation, Principal, Role, UsageStatus
from retrieval.ports import Vectors
from tests.app.server.stations import stations
from tests.retrieval.fakes import HashingEmbedder

ASKER = Principal("default", "ann", "key_1", Role.READER)


class InterruptedEmbedder(HashingEmbedder):
    """Calls `meanwhile` before it embeds passages."""

    def __init__(self) -> None:
        super().__init__(max_tokens=64)
        self.meanwhile: Callable[[], None] = lambda: None

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        self.meanwhile()
        return super().embed_documents(texts, on_batch=on_batch)


def test_it_ends_as_a_cancelled_answer_and_is_billed_for_what_was_embedded(state: State) -> None:
    embedder = InterruptedEmbedder()
    models = stations(state, NoEngine(revision="1", context_window=2000), embedder=embedder)
    library = models.inline.read([SentDocument("The keeper counted forty ships.")], tenant_id="default")
    question = Question(
        request_id="req_1", endpoint="messages", principal=ASKER, text="How many ships?", scope=library.scope
    )
    embedder.meanwhile = lambda: models.answerer.running.cancel("req_1", principal=ASKER)

    async def ask() -> None:
        answer = await models.inline.over(library).open(question).whole()
        assert (answer.reason, answer.text, answer.citations) == (Reason.CANCELLED, "", ())

    asyncio.run(ask())
    [row] = state.usage.ledger.usage("req_1")
    assert (row.operation, row.status) == (Operation.EMBED_DOC, UsageStatus.CLIENT_ABORT)
    assert row.input_tokens == library.tokens > 0
    assert len(models.answerer.running) == 0
