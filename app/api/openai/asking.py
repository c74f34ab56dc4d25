"""The question in the messages of OpenAI's protocol: the user's last one, what was said before it, the instructions."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.answering.languages.which_document import asks_which_document
from app.answering.question import Message, Question
from app.answering.understanding.followup.rules import exchanges_of, stand_alone
from app.errors import InvalidRequest, UnsupportedParameter

_INSTRUCTING = frozenset({"system", "developer"})
_TALKING = frozenset({"user", "assistant"})


@dataclass(frozen=True, slots=True)
class Asked:
    """What the messages of a request ask.

    Attributes:
        text: The last message, as the user wrote it.
        history: The messages of user and assistant before it, oldest first.
        instructions: The texts of system and developer messages, a line each.
    """

    text: str
    history: tuple[Message, ...]
    instructions: str

    @classmethod
    def of(cls, messages: Iterable[tuple[str, str]], *, param: str) -> "Asked":
        """The question in messages, each a role and a text.

        Args:
            messages: In the order of the conversation.
            param: The field of the request that held them, for the error.

        Raises:
            InvalidRequest: The last message is not the user's, or empty.
        """
        told = list(messages)
        turns = [(role, text) for role, text in told if role in _TALKING]
        if not turns or turns[-1][0] != "user" or not turns[-1][1].strip():
            raise InvalidRequest("The last message must be the user's, and not empty.", param=param)
        history = tuple(
            Message(role, text, asks=role == "assistant" and asks_which_document(text)) for role, text in turns[:-1]
        )
        instructions = "\n".join(text for role, text in told if role in _INSTRUCTING)
        return cls(turns[-1][1], history, instructions)

    def in_question(self, question: Question) -> Question:
        """The question with the history and instructions, rewritten to stand alone."""
        asked = replace(question, text=self.text, history=self.history, instructions=self.instructions)
        return asked.standing_alone(stand_alone(asked.text, exchanges_of(self.history)))


def refuse_logprobs_in_strict(*, wanted: bool, strict: bool, param: str) -> None:
    """Refuse log probabilities where only verified sentences are shown.

    Raises:
        UnsupportedParameter: They are `wanted`, and the server is strict.
    """
    if strict and wanted:
        raise UnsupportedParameter(
            f"{param}: this server shows verified sentences only, and log probabilities would tell the others.",
            param=param,
        )
