"""Parts of an answerer that a test does not need: they know nothing, and do nothing."""

from collections.abc import Mapping, Sequence
from typing import cast

from app.answering.conversations.conversations import Conversations
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.retrieving.overviews import Overviews
from app.answering.states.sources import Overview
from app.answering.understanding.catalogue_replies import CatalogueReplies
from app.answering.understanding.documents.meant import DocumentsMeant
from app.answering.verification.metered_models import Verification
from app.answering.verification.verifier import Verifier
from app.db.answer_citations import AnswerOutcome
from app.db.catalogue import CatalogueRepository
from app.db.contents import ContentRepository
from app.db.conversations import ConversationRepository
from app.errors import NotFound
from app.types import KeptTurn
from retrieval.ports import Embedder
from retrieval.types import Hit, Source


class NoConversations(Conversations):
    """There is none."""

    def __init__(self) -> None:
        super().__init__(cast(ConversationRepository, None), count_tokens=len, history_tokens=0)

    def opened(self, question: Question) -> tuple[KeptTurn, ...]:
        raise NotFound("There is no such conversation.")

    def left(self, question: Question) -> None:
        """Nothing was noted."""


class NoReplies(CatalogueReplies):
    """Every question is searched for."""

    def __init__(self) -> None:
        catalogue = cast(CatalogueRepository, None)
        super().__init__(catalogue, DocumentsMeant(catalogue))

    def reply(self, question: Question) -> str | None:
        return None

    def which(self, question: Question) -> str | None:
        return None


class NoOverviews(Overviews):
    """No question is about a document as a whole."""

    def __init__(self) -> None:
        catalogue = cast(CatalogueRepository, None)
        super().__init__(DocumentsMeant(catalogue), catalogue, cast(ContentRepository, None))

    def known(self, question: Question) -> Overview | None:
        return None

    def found(self, question: Question, hits: Sequence[Hit]) -> Overview | None:
        return None


class WordsAlone(Verification):
    """Verifies without a model."""

    def __init__(self) -> None:
        super().__init__(embedder=cast(Embedder, None))

    def verifier(self, question: Question, sources: Sequence[Source], *, meter: Meter) -> Verifier:
        return Verifier(sources, question=question.text)


class NoRecord:
    """Implements `CitationRecord`: nothing is recorded."""

    def record(
        self,
        request_id: str,
        *,
        tenant_id: str,
        citations: Mapping[str, int],
        outcome: AnswerOutcome | None = None,
    ) -> None:
        """Forget it."""

    def newer_versions(self, versions: Mapping[str, int], *, tenant_id: str) -> Mapping[str, int]:
        """None."""
        return {}
