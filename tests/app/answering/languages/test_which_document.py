"""app.answering.languages.which_document: the question back is recognised in plain texts, and in no others."""

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.languages.table import Replies, languages
from app.answering.languages.which_document import asks_which_document

REPLIES = {code: language.replies for code, language in languages().items() if language.replies is not None}
LISTED = "\n\n- `memo.txt`\n- `plan.pdf` (Strategic Plan 2022)"


@pytest.mark.parametrize("code", REPLIES)
@pytest.mark.parametrize("more", ["", LISTED, f" There are 12 documents here. The newest 10 are:{LISTED}"])
def test_the_question_back_is_recognised_in_each_language_that_has_replies(code: str, more: str) -> None:
    assert asks_which_document(f"{REPLIES[code].which_document}{more}")


@pytest.mark.parametrize("code", REPLIES)
def test_it_is_recognised_as_json_too(code: str) -> None:
    assert asks_which_document(json.dumps({"answer": REPLIES[code].which_document + LISTED}, ensure_ascii=False))


def other_replies(texts: Replies) -> list[str]:
    said = [getattr(texts, field.name) for field in fields(texts) if field.name != "which_document"]
    return [text for text in said if isinstance(text, str)]


@pytest.mark.parametrize("code", REPLIES)
def test_no_other_reply_is_taken_for_it(code: str) -> None:
    others = other_replies(REPLIES[code])

    assert others
    assert not any(asks_which_document(text) for text in others)


@pytest.mark.parametrize("code", languages())
def test_no_refusal_and_no_note_is_taken_for_it(code: str) -> None:
    texts = languages()[code].texts

    for text in (texts.no_evidence, texts.refusal, texts.unsure, texts.other_language):
        assert not asks_which_document(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Which document?",
        "Which document do you mean by that?",
        "The memo names the document. [1]",
        "**4 May** [1]\n\n> The plant in Oslo closed on 4 May. [1]",
        "- `memo.txt`\n- `plan.pdf`",
    ],
)
def test_an_answer_about_documents_is_not_taken_for_it(text: str) -> None:
    assert not asks_which_document(text)


@given(text=st.text(max_size=60))
def test_of_any_text_only_one_that_holds_the_words_asks(text: str) -> None:
    assert asks_which_document(text) == any(replies.which_document in text for replies in REPLIES.values())
