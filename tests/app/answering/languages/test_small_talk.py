"""app.answering.languages.small_talk: small talk is recognised, and no question about content is taken for it."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.answering.languages.small_talk import SmallTalk, small_talk
from app.answering.languages.table import Wish
from app.answering.question import Message
from app.answering.understanding.followup.rules import Exchange, exchanges_of, stand_alone

SAID = [
    ("hello", Wish.GREETING, "en"),
    ("Hi!", Wish.GREETING, "en"),
    ("Hey there 👋", Wish.GREETING, "en"),
    ("Good morning, how are you?", Wish.GREETING, "en"),
    ("Thanks", Wish.THANKS, "en"),
    ("Thank you very much!", Wish.THANKS, "en"),
    ("great, thanks for your help", Wish.THANKS, "en"),
    ("what documents do I have here?", Wish.DOCUMENTS, "en"),
    ("Which files are there?", Wish.DOCUMENTS, "en"),
    ("How many documents do I have?", Wish.DOCUMENTS, "en"),
    ("how many files can you search", Wish.DOCUMENTS, "en"),
    ("List all my documents, please.", Wish.DOCUMENTS, "en"),
    ("What’s in here?", Wish.DOCUMENTS, "en"),
    ("What can you do?", Wish.ABILITIES, "en"),
    ("Who are you?", Wish.ABILITIES, "en"),
    ("help", Wish.ABILITIES, "en"),
    ("Grüß Gott!", Wish.GREETING, "de"),
    ("Guten Morgen", Wish.GREETING, "de"),
    ("Vielen Dank!", Wish.THANKS, "de"),
    ("Welche Dokumente gibt es hier?", Wish.DOCUMENTS, "de"),
    ("Wer bist du?", Wish.ABILITIES, "de"),
    ("¡Hola!", Wish.GREETING, "es"),
    ("Muchas gracias", Wish.THANKS, "es"),
    ("¿Qué documentos hay?", Wish.DOCUMENTS, "es"),
    ("¿Quién eres?", Wish.ABILITIES, "es"),
    ("Bonjour !", Wish.GREETING, "fr"),
    ("Merci beaucoup pour votre aide", Wish.THANKS, "fr"),
    ("Quels documents y a-t-il ici ?", Wish.DOCUMENTS, "fr"),
    ("Que peux-tu faire ?", Wish.ABILITIES, "fr"),
]

CONTENT = [
    "",
    "?",
    "What can you do about rust?",
    "Which files mention Oslo?",
    "How many documents did the prosecutor submit?",
    "What documents do I have to bring to the interview?",
    "Which documents are required?",
    "Hello Kitty",
    "Who says hello in chapter two?",
    "Thanks to whom was the bridge built?",
    "What is here translated as grace?",
    "What is in the appendix?",
    "Who are you allowed to invite?",
    "How does this work for part-time staff?",
    "List the documents that the applicant must send.",
    "Help with invoices",
    "Hi-Lo tests: what are they?",
    "Combien de documents faut-il joindre ?",
    "Welche Dokumente braucht man?",
    "hello " * 40,
]


@pytest.mark.parametrize(("text", "wish", "language"), SAID, ids=[text for text, _, _ in SAID])
def test_small_talk_is_recognised(text: str, wish: Wish, language: str) -> None:
    assert small_talk(text) == SmallTalk(wish, language)


@pytest.mark.parametrize("text", CONTENT)
def test_a_question_about_content_is_none(text: str) -> None:
    assert small_talk(text) is None


@given(said=st.sampled_from(SAID), before=st.from_regex(r"[\s.!?,;–-]*", fullmatch=True), upper=st.booleans())
def test_case_and_punctuation_around_it_do_not_matter(said: tuple[str, Wish, str], before: str, upper: bool) -> None:
    text = said[0].upper() if upper else said[0]
    assume(len(text) + 2 * len(before) < 90)

    assert small_talk(f"{before}{text}{before}") == SmallTalk(said[1], said[2])


@given(said=st.sampled_from(SAID), more=st.sampled_from(["about rust", "in Oslo", "2021", "Northwind", "vertraglich"]))
def test_with_words_of_content_it_is_none(said: tuple[str, Wish, str], more: str) -> None:
    assert small_talk(f"{said[0].rstrip('?!. ')} {more}?") is None


ASKED = Exchange("When was the Eiffel Tower built?", "It was built in 1889 [1].")


@pytest.mark.parametrize("text", [text for text, _, _ in SAID])
def test_small_talk_is_no_follow_up(text: str) -> None:
    assert stand_alone(text, [ASKED]) == text


def test_small_talk_between_questions_explains_nothing() -> None:
    messages = [
        Message("user", ASKED.question),
        Message("assistant", ASKED.answer),
        Message("user", "Thanks!"),
        Message("assistant", "You are welcome."),
    ]

    assert exchanges_of(messages) == [ASKED]
