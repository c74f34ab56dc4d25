"""Cuts a conversation to the newest part, which is all that the rules for follow-up questions read."""

from collections.abc import Sequence
from dataclasses import replace

from app.answering.understanding.followup.antecedents import Exchange

HISTORY_CHARACTERS = 4_000  # that the rules read of a conversation: several exchanges of usual length
_EXCHANGES = 32  # that they read at most; a message may be empty


def newest(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The last exchanges with at most `HISTORY_CHARACTERS` characters together, oldest first.

    The questions and answers count first, then the passages, each from the newest exchange on. An exchange whose
    question does not fit is left out with those before it; only the last exchange is always there. Of an answer or of
    passages that do not fit, the beginning is read.
    """
    left = HISTORY_CHARACTERS
    chosen: list[Exchange] = []
    for exchange in reversed(exchanges[-_EXCHANGES:]):
        if chosen and len(exchange.question) > left:
            break
        question = exchange.question[:left]
        answer = exchange.answer[: left - len(question)]
        left -= len(question) + len(answer)
        chosen.append(Exchange(question, answer, exchange.cited))
    for at, exchange in enumerate(chosen):
        chosen[at] = replace(exchange, cited=exchange.cited[:left])
        left -= len(chosen[at].cited)
    return chosen[::-1]
