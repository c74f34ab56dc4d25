"""app.answering.languages.refusals: Footnote refuses in the language of the question, and recognises a refusal."""

import pytest

from app.answering.generating.wording import Wording
from app.answering.languages.recognition import language_of
from app.answering.languages.refusals import no_evidence, refusal, refuses, unsure
from app.answering.languages.table import REFUSAL, languages
from tests.app.answering.languages.test_recognition import QUESTIONS


@pytest.mark.parametrize("code", languages())
def test_footnotes_own_sentences_are_in_the_questions_language(code: str) -> None:
    asked = QUESTIONS[code]

    assert no_evidence(asked) == languages()[code].texts.no_evidence
    assert refusal(asked) == languages()[code].texts.refusal
    assert language_of(no_evidence(asked)) == code
    assert refuses(refusal(asked), cited=False)
    assert not refuses(asked, cited=False)


def test_the_english_refusal_is_what_the_prompt_asks_for() -> None:
    assert languages()["en"].texts.refusal == REFUSAL
    assert REFUSAL in Wording().system
    assert REFUSAL in Wording().reminder


@pytest.mark.parametrize("code", languages())
def test_the_sentence_above_the_nearest_passages_is_in_the_questions_language_and_no_refusal(code: str) -> None:
    sentence = languages()[code].texts.unsure

    assert unsure(QUESTIONS[code]) == sentence
    assert language_of(sentence) == code
    assert not refuses(sentence, cited=True)
    assert not refuses(sentence, cited=False)


@pytest.mark.parametrize("answer", ["I don’t know.", " i don't know, sorry", "Ich weiß es nicht", "No lo sé. [1]"])
def test_a_refusal_is_recognised_however_it_is_typed(answer: str) -> None:
    assert refuses(answer, cited=False)


@pytest.mark.parametrize("answer", ["", "Revenue rose.", "He said: I don't know.", "Nu"])
def test_an_answer_is_no_refusal(answer: str) -> None:
    assert not refuses(answer, cited=False)


@pytest.mark.parametrize(
    "text", ["I don't know.[1]", "I don’t know [2]", "i don't know. [1] [3]", "Das weiß ich nicht. [1]"]
)
def test_a_refusal_is_one_also_with_a_marker_behind_it(text: str) -> None:
    assert refuses(text, cited=True) == refuses(text, cited=False)
    assert refuses(f"{text} The plant closed in May [2].", cited=True) is False


@pytest.mark.parametrize("code", languages())
def test_every_languages_refusal_is_one(code: str) -> None:
    assert refuses(languages()[code].texts.refusal, cited=True)
    assert refuses(f"{languages()[code].texts.refusal} [1]", cited=True)
