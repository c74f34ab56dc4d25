"""The instructions of the collection that is asked come before those of the request."""

from dataclasses import replace

import pytest

from app.answering.question import Question
from app.answering.understanding.understanding import Understanding
from retrieval.types import Scope
from tests.app.answering.absent import NoConversations, NoReplies
from tests.app.answering.groundings import QUESTION
from tests.app.answering.metered import meter_of


@pytest.mark.parametrize(
    ("kept", "asked", "read"),
    [
        ("Be brief.", "", "Be brief."),
        ("Be brief.", "Name the year.", "Be brief.\nName the year."),
        ("", "Name the year.", "Name the year."),
        ("", "", ""),
    ],
)
def test_both_are_read(kept: str, asked: str, read: str) -> None:
    scopes: list[Scope] = []

    def instructions(scope: Scope) -> str:
        scopes.append(scope)
        return kept

    understanding = Understanding(conversations=NoConversations(), replies=NoReplies(), instructions=instructions)
    question = replace(QUESTION, instructions=asked)

    understood = understanding.understood(question, meter_of(question))

    assert isinstance(understood, Question)
    assert understood.instructions == read
    assert scopes == [QUESTION.scope]
