"""Reads the turns of conversations, and stores their answers with a record of how they were produced."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from pydantic import TypeAdapter

from app.answering.answer import AbstentionReport, Answer, Budget, QuotedSpan, SourceReport
from app.answering.metering.token_usage import Purpose, TokenUsage
from app.answering.question import Message, Question
from app.db.asked_questions import AskedQuestionRepository
from app.db.conversations import ConversationRepository
from app.db.values import require_text
from app.errors import StorageFull, StoreUnavailable
from app.telemetry.logs import logger
from app.types import KeptTurn, Turn
from retrieval.types import Span


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The fields of an `Answer` other than its text and footnotes, with their values at its end.

    Its bill is the one the client was sent; after a correction of prices the ledger's may differ.
    """

    model: str
    reason: str | None
    finish_reason: str
    uncited: tuple[Span, ...]
    abstention: AbstentionReport
    sources: SourceReport
    usage: TokenUsage
    budget: Budget
    timings_ms: Mapping[str, float | None]
    quoted: tuple[QuotedSpan, ...] = ()  # answers stored before these fields existed have none
    answers: float | None = None
    lead: Span | None = None

    @classmethod
    def of(cls, answer: Answer) -> "AnswerRecord":
        """The record of `answer`."""
        return cls(**{field.name: getattr(answer, field.name) for field in fields(cls)})

    @classmethod
    def from_json(cls, kept: Mapping[str, object]) -> "AnswerRecord":
        """The record from what `as_json` returned, unchanged; records of earlier versions are brought up to date."""
        return _KEPT.validate_python(_with_calls(kept))

    def as_json(self) -> dict[str, object]:
        """The record in JSON types."""
        made: dict[str, object] = _KEPT.dump_python(self, mode="json")
        return made


_KEPT = TypeAdapter(AnswerRecord)

_HELPERS = {
    "rewrite_tokens": Purpose.REWRITE,
    "embedding_tokens": Purpose.EMBED_QUERY,
    "rerank_tokens": Purpose.RERANK,
    "summary_tokens": Purpose.SUMMARISE,
    "locate_tokens": Purpose.LOCATE,
    "extract_tokens": Purpose.EXTRACT,
    "verify_tokens": Purpose.VERIFY,
}
"""The fields of usage in earlier records that counted a purpose's tokens, read and written together."""


def _with_calls(kept: Mapping[str, Any]) -> Mapping[str, Any]:
    """A record whose usage lists its calls. Earlier ones counted tokens by purpose, without the helpers' models."""
    usage = kept["usage"]
    if "calls" in usage:
        return kept
    calls = [
        {"purpose": purpose, "model": "", "prompt_tokens": usage[field]}
        for field, purpose in _HELPERS.items()
        if usage.get(field)
    ]
    read, written = sum(usage["components"].values()), usage["completion_tokens"]
    if read + written:
        answering = {"prompt_tokens": read, "cached_tokens": usage["cached_tokens"], "completion_tokens": written}
        calls.append({"purpose": Purpose.ANSWER, "model": kept["model"], **answering})
    return {**kept, "model": kept["model"] if read + written else "", "usage": {**usage, "calls": calls}}


QUOTED = "(quoted from the documents)"
"""What an answer of nothing but quotes is in a history."""

_NOTHING_BUT_SIGNS = re.compile(r"[>\s“”]*+(?:\[\d+\])?+\s*+")
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
        turn = Turn(
            request_id=question.request_id,
            question=question.as_asked,
            standalone=question.standalone,
            answer=answer.text,
            answered=answer.answered,
            citations=tuple(asdict(citation) for citation in answer.citations),
            making=AnswerRecord.of(answer).as_json(),
        )
        self._repository.append(question.conversation_id, turn)
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


def history_of(turns: Sequence[KeptTurn], *, budget: int, count_tokens: Callable[[str], int]) -> tuple[Message, ...]:
    """The last complete turns with at most `budget` tokens together, oldest first.

    Questions are in their rewritten form, so that they are understood without the omitted turns. Answers are without
    their quotes, but for the words that lead: a document's sentences would else be the model's own earlier words.
    """
    chosen: list[Message] = []
    for turn in reversed(turns):
        question, answer = turn.standalone or turn.question, _unquoted(turn)
        budget -= count_tokens(question) + count_tokens(answer)
        if budget < 0:
            break
        chosen = [Message("user", question), Message("assistant", answer), *chosen]
    return tuple(chosen)


def _unquoted(turn: KeptTurn) -> str:
    """The answer of a turn without the documents' sentences that it quotes, and without the signs around them."""
    if turn.making is None:
        return turn.answer
    record = AnswerRecord.from_json(turn.making)
    if not record.quoted:
        generated = record.usage.answer_tokens > 0
        return turn.answer if generated or not turn.citations else QUOTED  # in JSON it is not known what is quoted
    kept, at = "", 0
    for quote in sorted(record.quoted, key=lambda one: one.start_char):
        kept += turn.answer[at : quote.start_char]
        at = quote.end_char
    lines = (kept + turn.answer[at:]).split("\n")
    return "\n".join(line for line in lines if not _NOTHING_BUT_SIGNS.fullmatch(line)) or QUOTED
