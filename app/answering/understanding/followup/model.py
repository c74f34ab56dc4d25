"""Rewrites follow-up questions with the language model, and checks the result against the conversation.

The rules decide whether a question needs rewriting (`app.answering.understanding.followup.rules`). The model's version
is used only if it keeps the names and numbers of the question and adds none from outside the conversation. Otherwise
the version of the rules is used. The call is billed.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from app.answering.languages.noun_phrases import names
from app.answering.metering.meter import Meter
from app.answering.metering.settler import completions
from app.answering.metering.token_usage import Purpose
from app.answering.prompt import FENCE, Component, Prompt, Segment, quoted
from app.answering.question import Message, Question
from generation.ports import Tokenizer
from generation.types import Completion, FinishReason

SYSTEM = (
    "Rewrite the last question so that it can be understood without the conversation. "
    "Put the names in place of words like it, they, that or there. Keep its names and numbers, change nothing else. "
    "Do not answer it. Reply with the rewritten question alone."
)
_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")
_TIME_SHARE = 4  # at most 1/4 of the time left
_MORE_TOKENS = 48  # beyond twice the question's tokens
_MORE_CHARACTERS = 200  # beyond three times the question's characters


class Rewriter:
    """Rewrites follow-up questions with the language model. One instance serves every request.

    >>> rewriter.rewritten(question, meter=meters.of(question)).text
    """

    def __init__(self, *, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def rewritten(self, question: Question, *, meter: Meter) -> Question:
        """`question`, rewritten by the model if its version is usable, else by the rules. Blocks until the call ends.

        Args:
            question: Its `text` is the version of the rules; its `history` is in the model's prompt.
            meter: Meters the call; closing it stops the call.

        Raises:
            StoreUnavailable, StorageFull, BudgetExceeded: The call was not reserved, and not made.
        """
        if not question.history:
            return question
        completion = self._completion(question, meter)
        if completion is None:
            return question
        text = " ".join(completion.text.split()).strip('"“”')
        usable = completion.finish_reason is FinishReason.STOP and is_rewriting(
            text, asked=question.as_asked, said=[message.content for message in question.history]
        )
        return replace(question, text=text, asked=question.as_asked) if usable else question

    def _completion(self, question: Question, meter: Meter) -> Completion | None:
        """The completion of the model's call; None where it was not made."""
        prompt = _prompt(self._tokenizer, question.as_asked, question.history)
        max_tokens = 2 * self._tokenizer.count(question.as_asked) + _MORE_TOKENS
        stream = meter.helping(Purpose.REWRITE, prompt, max_tokens=max_tokens, time_share=_TIME_SHARE)
        (completion,) = completions([stream])
        return completion


def is_rewriting(text: str, *, asked: str, said: Sequence[str]) -> bool:
    """Whether `text` is a usable rewriting of the question `asked` in the conversation `said`.

    It must keep every name and number of the question, and add none that is not in the conversation. It must be a
    question if `asked` is one, and be neither empty nor much longer.
    """
    if not text or len(text) > 3 * len(asked) + _MORE_CHARACTERS:
        return False
    if asked.rstrip().endswith("?") and not text.endswith("?"):
        return False
    folded, known = text.casefold(), " ".join((asked, *said)).casefold()
    kept = all(name.casefold() in folded for name in names(asked)) and _numbers(asked) <= _numbers(text)
    return kept and all(name.casefold() in known for name in names(text)) and _numbers(text) <= _numbers(known)


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def _prompt(tokenizer: Tokenizer, asked: str, history: Sequence[Message]) -> Prompt:
    """The conversation and the question as token-id segments; earlier turns count as history."""
    frame = tokenizer.chat_frame(["system", "user"])

    def text(component: Component, content: str) -> Segment:
        return Segment(component, tuple(tokenizer.encode(content)))

    segments = [Segment(Component.TEMPLATE, frame[0]), text(Component.SYSTEM, SYSTEM)]
    segments += [Segment(Component.TEMPLATE, frame[1]), text(Component.TEMPLATE, "Conversation:\n\n")]
    for message in history:
        if message.role == "user":
            segments += [text(Component.TEMPLATE, "Question: "), text(Component.HISTORY, f"{message.content}\n")]
            continue
        segments.append(text(Component.TEMPLATE, f"Answer:\n{FENCE}\n"))  # it may quote a document
        segments += [text(Component.HISTORY, f"{quoted(message.content)}\n"), text(Component.TEMPLATE, f"{FENCE}\n")]
    segments += [text(Component.TEMPLATE, "\nLast question: "), text(Component.QUESTION, asked)]
    # Small models answer a question at the end of the prompt instead of rewriting it.
    segments += [text(Component.TEMPLATE, "\n\nThe last question, rewritten:"), Segment(Component.TEMPLATE, frame[2])]
    return Prompt(tuple(segments))
