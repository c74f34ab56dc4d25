"""How a kept answer was made: what it told beside its words and footnotes, in JSON's types and back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

from pydantic import TypeAdapter

from app.answering.answer import AbstentionReport, Answer, Budget, SourceReport, TokenUsage
from app.answering.followup.rules import Exchange, stand_alone
from app.answering.prompt import Message
from app.answering.question import Question
from app.db.conversations import ConversationRepository
from app.db.values import require_text
from app.types import KeptTurn, Turn
from retrieval.types import Span


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The fields of an `Answer` by these names, as they were when it ended.

    So its bill is the one its reader was given; what the ledger says after a price was put right may be another.
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
    quoted: tuple[Span, ...] = ()  # answers kept before it was told have none

    @classmethod
    def of(cls, answer: Answer) -> "AnswerRecord":
        """How `answer` was made."""
        return cls(**{field.name: getattr(answer, field.name) for field in fields(cls)})

    @classmethod
    def from_json(cls, kept: Mapping[str, object]) -> "AnswerRecord":
        """What `as_json` made, exactly."""
        return _KEPT.validate_python(kept)

    def as_json(self) -> dict[str, object]:
        """In JSON's types."""
        made: dict[str, object] = _KEPT.dump_python(self, mode="json")
        return made


_KEPT = TypeAdapter(AnswerRecord)


_TURNS = 32  # looked at; more do not fit any history worth its tokens


class Conversations:
    """Takes questions into their conversations and keeps the answers. One instance serves every request."""

    def __init__(
        self, repository: ConversationRepository, *, count_tokens: Callable[[str], int], history_tokens: int
    ) -> None:
        """`count_tokens` is the generator's; `history_tokens` the most its history may cost a question."""
        self._repository = repository
        self._count = count_tokens
        self._history_tokens = history_tokens

    def joined(self, question: Question) -> Question:
        """`question` with its conversation's history, rewritten to stand alone; unchanged where it is in none.

        Raises:
            NotFound: No such conversation for this caller.
            Forbidden: The conversation is shared with this caller, to be read.
            Conflict: The conversation is not this key's to go on with.
            InvalidRequest: The question holds what cannot be kept.
        """
        if question.conversation_id is None:
            return question
        require_text(question.text, param="question")
        self._repository.require_open(question.conversation_id, principal=question.principal)
        turns = self._repository.turns(question.conversation_id, principal=question.principal, newest=_TURNS)
        exchanges = [Exchange(turn.standalone or turn.question, turn.answer) for turn in turns]
        history = history_of(turns, budget=self._history_tokens, count_tokens=self._count)
        return replace(question.standing_alone(stand_alone(question.text, exchanges)), history=history)

    def keep(self, question: Question, answer: Answer) -> None:
        """Store a turn that ended, refusals too; nothing of an error, a cancellation or a dry run.

        Also nothing when the conversation was deleted meanwhile: that was final.

        Raises:
            StoreUnavailable, StorageFull: It could not be stored.
        """
        if question.conversation_id is None or question.dry_run or not answer.whole:
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


def history_of(turns: Sequence[KeptTurn], *, budget: int, count_tokens: Callable[[str], int]) -> tuple[Message, ...]:
    """The last whole turns that cost at most `budget` tokens together, oldest first.

    What cannot be understood without a turn that is left out is put as it was understood.
    """
    chosen: list[Message] = []
    for turn in reversed(turns):
        question = turn.standalone or turn.question
        budget -= count_tokens(question) + count_tokens(turn.answer)
        if budget < 0:
            break
        chosen = [Message("user", question), Message("assistant", turn.answer), *chosen]
    return tuple(chosen)
