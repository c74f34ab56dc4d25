"""app.answering.quoting.subject: words lead an answer only from a passage that names what the question asks about."""

from dataclasses import replace

import pytest

from app.answering.citing.citation import CONFIRMED
from app.answering.quoting.candidates import candidates_of
from app.answering.quoting.selection import UNCONFIRMED, leads
from app.answering.quoting.subject import names_subject
from app.answering.understanding.followup.rules import Exchange, stand_alone
from retrieval.types import Context, Source
from retrieval.words import says_new
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.quoting.selecting import selected
from tests.app.answering.sources import source

LAMP = "When was the first electric lamp lit?"
OSLO = "When did the Oslo plant close?"


def about(question: str, found: Source) -> bool:
    """Whether the last candidate of a source names the subject."""
    return names_subject(question, candidates_of([found])[-1])


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (LAMP, "The first lamp was lit in 1820."),
        (LAMP, "The first electric motor ran in 1834."),
        ("How long is the warranty period?", "The lease is for 24 months."),
        ("What is the cost of the lantern?", "An oar costs 3 EUR."),
        ("What is Mira Vale's phone number?", "Mira Vale writes to harbour.example."),
        (OSLO, "The Bergen plant closed on 4 May."),
        (OSLO, "The Oslo plant is large. The Bergen plant closed on 4 May."),
        (OSLO, "The plant in Bergen closed on 4 May."),
        ("How many people work in Oslo?", "Oslo has a port. In Bergen 200 people work."),
        ("How many people work in Oslo?", "Oslo has a port. The Bergen plant has 200 people."),
        ("How many lamps did Contoso sell?", "Contoso makes lamps. Orr Lamps sold 90 lamps."),
        ("When did Mira Vale join?", "Tom Orr joined in 2004."),
    ],
)
def test_another_thing_is_not_the_subject(question: str, text: str) -> None:
    assert not about(question, source(text))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (LAMP, "The first electric lamp was lit in 1840."),
        (LAMP, "The electric lamps were new. They were first lit in 1840."),
        ("When was the first e-mail sent?", "The first email was sent by a harbour in 1971."),
        ("Who was the founder of the harbour?", "The harbour was founded by Mira Vale."),
        ("How long is the warranty period?", "The warranty is 24 months."),
        ("What is the cost of the lantern?", "A lantern is sold for 3 EUR."),
        (OSLO, "The Oslo plant closed on 4 May, the Bergen plant on 5 May."),
        (OSLO, "The Oslo plant is large. The plant closed on 4 May."),
        ("When did Contoso close the kiln in Oslo?", "Contoso sold the kiln in Oslo. Closed in 2004, it was rebuilt."),
        ("How many people work in Oslo?", "Oslo has a port. There 200 people work."),
        ("When did Rene Valee keep the lamp?", "René Valée kept the lamp in 1840."),
        ("Who had the notion of a lamp's power?", "The power of a lamp was first measured by Vale."),
        ("Who works in Oslo?", "Oslo has a port. Mira Vale works there."),
        ("How many people were hurt?", "Twelve were injured."),
        ("How long were the three boats used?", "A total of 3 boats were used for 15 hours."),
        ("When was the list of changes updated?", "Changes to the lamp were updated in May."),
        ("Wann wurde das Werk geschlossen?", "Es regnete."),
    ],
)
def test_the_subject_is_in_the_sentence_or_what_it_refers_to(question: str, text: str) -> None:
    assert about(question, source(text))


def test_the_subject_may_be_in_the_heading_the_title_the_file_name_or_the_names_of_the_columns() -> None:
    plain = source("The first one was lit in 1840.")
    chunk = plain.hit.chunk

    assert not about(LAMP, plain)
    for above in (
        replace(chunk, heading_path=("History", "Electric lamps")),
        replace(chunk, title="The electric lamp"),
        replace(chunk, filename="electric_lamps.pdf"),
        replace(chunk, table_header="Electric lamp | Lit"),
    ):
        assert about(LAMP, replace(plain, hit=replace(plain.hit, chunk=above)))


def test_a_heading_does_not_make_a_sentence_about_another_thing_right() -> None:
    assert about(OSLO, source("The plant closed on 4 May.", heading="Oslo"))
    assert not about(OSLO, source("The Bergen plant closed on 4 May.", heading="Oslo"))


def test_words_of_another_thing_do_not_lead_and_are_not_confirmed_but_shown() -> None:
    right = "The first electric lamp was lit in 1840."
    for text, names_it in ((right, True), ("The first lamp was lit in 1840.", False)):
        shown = Context((source(text),), (), 10)
        found = selected(LAMP, shown, PointingReader("1840"))

        assert [(quote.text, quote.about) for quote in found.quotes] == [(text, names_it)]
        sure = replace(found, score=0.99)
        assert leads(LAMP, sure) == names_it
        assert names_it or found.score == found.quotes[0].score <= UNCONFIRMED < CONFIRMED


def test_words_that_the_question_says_itself_are_shown_and_not_confirmed() -> None:
    question = "What is the density of the steel SNB22-3?"
    for text, new in (("Density of the steel SNB22-3.", False), ("Density of the steel SNB22-3: 7.8.", True)):
        found = selected(question, Context((source(text),), (), 10), PointingReader("steel"))

        assert [(quote.text, quote.about) for quote in found.quotes] == [(text, new)]
        assert new or found.score <= UNCONFIRMED


def test_a_follow_up_about_a_named_thing_is_not_led_by_words_about_another_of_its_kind() -> None:
    before = [Exchange("When was the Oslo plant built?", "The Oslo plant was built in 1990 [1].")]
    question = stand_alone("And when did it close?", before)
    shown = Context((source("The Bergen plant did close on 4 May."),), (), 10)
    found = selected(question, shown, PointingReader("4 May"))

    assert "Oslo" in question
    assert not leads(question, replace(found, score=0.99))
    assert found.score <= UNCONFIRMED


def test_words_that_the_question_says_itself_do_not_lead() -> None:
    assert not says_new("What is the density of the steel?", "Density")
    assert says_new("What is the density of the steel?", "7.8")
    assert says_new("Which plant is larger, Oslo or Bergen?", "Oslo")
