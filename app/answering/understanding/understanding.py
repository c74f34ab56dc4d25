"""Understands a question: replies that need no search, its conversation, and the question that stands for it alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.answering.conversations.conversations import Conversations
from app.answering.languages.small_talk import small_talk
from app.answering.metering.meter import Meter
from app.answering.question import Question
from app.answering.understanding.catalogue_replies import CatalogueReplies
from app.answering.understanding.documents.asking import wanted_overview
from app.answering.understanding.followup.antecedents import Exchange
from app.answering.understanding.followup.continuation import goes_on
from app.answering.understanding.followup.model import Rewriter
from app.answering.understanding.followup.rules import stand_alone
from app.types import KeptTurn
from retrieval.types import Scope

_CITED = 3  # footnotes of an answer that are read for antecedents


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply that needs no search, to a question that was added to its conversation.

    `asks` says that it is the question back, which document is meant.
    """

    question: Question
    text: str
    asks: bool = False


class Understanding:
    """Understands questions. One instance serves every request.

    >>> understood = understanding.understood(question, meters.of(question))
    >>> understood.text, understood.history, understood.preferred
    """

    def __init__(
        self,
        *,
        conversations: Conversations,
        replies: CatalogueReplies,
        rewriter: Rewriter | None = None,
        instructions: Callable[[Scope], str] = lambda _: "",
    ) -> None:
        """Without a rewriter follow-ups are rewritten by rules alone.

        `instructions` are those of the collection that is asked, read from the database.
        """
        self._conversations = conversations
        self._replies = replies
        self._rewriter = rewriter
        self._instructions = instructions

    def at_once(self, question: Question) -> Reply | None:
        """The reply to small talk; None for every other question.

        Raises:
            InvalidFilter: The scope's filter cannot be compiled.
            NotFound, Forbidden, Conflict, InvalidRequest: As `Conversations.opened`.
            StoreUnavailable: The database cannot be read.
        """
        text = self._replies.reply(question)
        return None if text is None else Reply(question=self._joined(question), text=text)

    def understood(self, question: Question, meter: Meter) -> Question | Reply:
        """The question with its history and the instructions of its collection, rewritten to stand alone.

        Or the question back, which document is meant.

        Raises:
            BudgetExceeded: The language model that rewrites was not called.
            InvalidFilter, NotFound, Forbidden, Conflict, InvalidRequest, StoreUnavailable: As `at_once`.
        """
        question = self._joined(question)
        if self._rewriter is not None and question.standalone is not None and not question.dry_run:
            question = self._rewriter.rewritten(question, meter=meter)
        text = self._replies.which(question)
        if text is None and (instructions := self._instructions(question.scope)):
            question = replace(question, instructions="\n".join(filter(None, (instructions, question.instructions))))
        return question if text is None else Reply(question=question, text=text, asks=True)

    def _joined(self, question: Question) -> Question:
        """The question with its conversation's history, completed by rules.

        Where it goes on with the subject of the last answer, the documents which that answer cites are preferred; so
        they are where it asks about a document as a whole, which may be that one.
        """
        if question.conversation_id is None:
            return question
        turns = self._conversations.opened(question)
        if question.alone:
            return question
        turns = tuple(turn for turn in turns if small_talk(turn.question) is None)  # a greeting explains nothing
        exchanges = [_exchange(turn) for turn in turns]
        text = stand_alone(question.text, exchanges)
        preferred: tuple[str, ...] = ()
        if exchanges and (goes_on(question.text, text, exchanges[-1]) or wanted_overview(question.text)):
            preferred = _cited(turns)
        return replace(question.standing_alone(text), history=self._conversations.history(turns), preferred=preferred)


def _cited(turns: Sequence[KeptTurn]) -> tuple[str, ...]:
    """The documents that the last answer with footnotes cites, each once."""
    cited = next((turn.citations for turn in reversed(turns) if turn.citations), ())
    return tuple(dict.fromkeys(str(citation["document_id"]) for citation in cited))


def _exchange(turn: KeptTurn) -> Exchange:
    """The turn as rules read it: a refusal answers nothing, and footnotes tell what the answer is about."""
    cited = "\n".join(str(citation["cited_text"]) for citation in turn.citations[:_CITED])
    return Exchange(turn.standalone or turn.question, turn.answer if turn.answered else "", cited)
