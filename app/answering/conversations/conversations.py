"""Reads the turns of conversations, and stores their answers with a record of how they were produced."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from app.answering.answers.answer import Answer
from app.answering.answers.parts import ClarifyPart, QuotePart, of_kind
from app.answering.conversations.answer_record import AnswerRecord
from app.answering.languages.which_document import asks_which_document
from app.answering.question import Message, Question
from app.db.asked_questions import AskedQuestionRepository
from app.db.conversations import ConversationRepository
from app.db.values import require_text
from app.errors import StorageFull, StoreUnavailable
from app.telemetry.logs import logger
from app.types import KeptTurn, Turn

QUOTED = "(quoted from the documents)"
"""What an answer of nothing but quotes is in a history."""

_TURNS = 32  # the newest that are read; more never fit into a history


class Conversations:
    """Opens conversations for questions and stores the answers. One instance serves every request.

    >>> turns = conversations.opened(question)
    >>> conversations.keep(question, answer)
    """

    def __init__(
        self,
        repository: ConversationRepository,
        *,
        count_tokens: Callable[[str], int],
        history_tokens: int,
        asked: AskedQuestionRepository | None = None,
    ) -> None:
        """`count_tokens` counts in the language model's tokens; `history_tokens` is the most of a history.

        `asked` has the questions that are being answered; without it those that a crash interrupts are not known.
        """
        self._repository = repository
        self._count = count_tokens
        self._history_tokens = history_tokens
        self._asked = asked
        self._noted: set[str] = set()  # requests that `asked` has a row of

    def opened(self, question: Question) -> tuple[KeptTurn, ...]:
        """The newest turns of the question's conversation, oldest first; it is noted that it is being answered.

        None of them where it is in no conversation, and where it is asked `alone`.

        Raises:
            NotFound: No such conversation for this caller.
            Forbidden: The conversation is shared with this caller for reading only.
            Conflict: The conversation was begun with another key, which alone may continue it.
            InvalidRequest: The question has characters that cannot be stored.
        """
        if question.conversation_id is None:
            return ()
        require_text(question.text, param="question")
        self._repository.require_open(question.conversation_id, principal=question.principal)
        self._begun(question, question.conversation_id)
        if question.alone:
            return ()
        return self._repository.turns(question.conversation_id, principal=question.principal, newest=_TURNS)

    def history(self, turns: Sequence[KeptTurn]) -> tuple[Message, ...]:
        """As much of turns as a prompt shows (`history_of`)."""
        return history_of(turns, budget=self._history_tokens, count_tokens=self._count)

    def keep(self, question: Question, answer: Answer) -> None:
        """Store the turn of a complete answer or refusal; nothing after an error, a cancellation or a dry run.

        Nothing is stored either if the conversation was deleted meanwhile.

        Raises:
            StoreUnavailable, StorageFull: It could not be stored.
        """
        if question.conversation_id is None or question.dry_run:
            return
        if not answer.whole:
            self.left(question)
            return
        self._repository.append(question.conversation_id, turn_of(question, answer))
        self._noted.discard(question.request_id)  # its row went with the same transaction

    def left(self, question: Question) -> None:
        """No answer will be kept for `question`, and its asker knows: it failed, was stopped, or nobody waits for it.

        Idempotent; a failure of the database is logged and not raised.
        """
        if self._asked is None or question.request_id not in self._noted:
            return
        self._noted.discard(question.request_id)
        try:
            self._asked.end(question.request_id)
        except (StoreUnavailable, StorageFull) as error:
            logger().warning("question.not_ended", request_id=question.request_id, error=type(error).__name__)

    def _begun(self, question: Question, conversation_id: str) -> None:
        """Note that the question is being answered. A full disk does not keep it from its answer."""
        if self._asked is None or question.dry_run:
            return
        try:
            self._asked.begin(question.request_id, conversation_id=conversation_id, question=question.as_asked)
            self._noted.add(question.request_id)
        except (StoreUnavailable, StorageFull) as error:
            logger().warning("question.not_noted", request_id=question.request_id, error=type(error).__name__)


def turn_of(question: Question, answer: Answer) -> Turn:
    """The turn of a question and its whole answer, as it is stored."""
    return Turn(
        request_id=question.request_id,
        question=question.as_asked,
        standalone=question.standalone,
        answer=answer.text,
        answered=answer.reason is None,
        citations=tuple(_without(asdict(citation), "current_version") for citation in answer.citations),
        making=AnswerRecord.of(answer).as_json(),
    )


def _without(fields: dict[str, object], name: str) -> dict[str, object]:
    """The fields without one: which version is current is looked up when a turn is read."""
    return {key: value for key, value in fields.items() if key != name}


def history_of(turns: Sequence[KeptTurn], *, budget: int, count_tokens: Callable[[str], int]) -> tuple[Message, ...]:
    """The last complete turns with at most `budget` tokens together, oldest first.

    Questions are in their rewritten form, so that they are understood without the omitted turns. Answers are without
    their quotes, but for the words that lead: a document's sentences would else be the model's own earlier words.
    """
    chosen: list[Message] = []
    for turn in reversed(turns):
        asked, answered = turn.standalone or turn.question, _said(turn)
        budget -= count_tokens(asked) + count_tokens(answered.content)
        if budget < 0:
            break
        chosen = [Message("user", asked), answered, *chosen]
    return tuple(chosen)


def _said(turn: KeptTurn) -> Message:
    """The answer of a turn, as a model sees it, and whether it asks which document is meant."""
    record = AnswerRecord.of_turn(turn)
    if record is None:
        return Message("assistant", turn.answer, asks=asks_which_document(turn.answer))
    return Message("assistant", _unquoted(turn, record), asks=bool(of_kind(record.parts, ClarifyPart)))


def _unquoted(turn: KeptTurn, record: AnswerRecord) -> str:
    """The answer of a turn without the documents' sentences that it quotes, and without the signs around them."""
    if not of_kind(record.parts, QuotePart):
        generated = record.usage.answer_tokens > 0
        return turn.answer if generated or not turn.citations else QUOTED  # in JSON it is not known what is quoted
    own = (part for part in record.parts if not isinstance(part, QuotePart))
    return "\n\n".join(turn.answer[part.start_char : part.end_char] for part in own) or QUOTED
