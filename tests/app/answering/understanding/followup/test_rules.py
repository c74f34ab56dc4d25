"""app.answering.understanding.followup.rules: follow-ups are made to stand alone; other questions stay as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.question import Message
from app.answering.understanding.followup.rules import Exchange, exchanges_of, stand_alone

REVENUE = Exchange(
    "By how much did Northwind's revenue rise in 2025?", "Revenue rose 12 percent to 48 million dollars [1]."
)
PLANT = Exchange("When did the plant in Oslo close?", "The plant in Oslo closed on 4 May 2025 [1].")
TOWER = Exchange("When was the Eiffel Tower built?", "It was built in 1889 [1].")
CAPITAL = Exchange("What is the capital of France?", "Paris [1].")
POPULATION = Exchange("What is the population of France?", "France has 67 million people [2].")
OFFICER = Exchange(
    "Who became chief financial officer of Northwind?",
    "Zoë Müller became chief financial officer in March 2025 [1].",
)
CURIE = Exchange("Where was Marie Curie born?", "She was born in Warsaw [1].")
SHIPS = Exchange("Which companies own ships?", "Northwind and Contoso own ships [1].")
PURCHASE = Exchange("Did Northwind buy Contoso?", "Yes, in 2019 [1].")
PLAY = Exchange("Who wrote Hedda Gabler?", "Henrik Ibsen wrote it [1].")
STAFF = Exchange("How many people work at Northwind?", "It employs 310 people in Oslo and Gdańsk [1].")
PRIZE = Exchange("Who won the Nobel Prize in Physics in 1921?", "Albert Einstein [1].")
REFUSED = Exchange("What is the warranty period of the pump?", "I don't know.")
PILOT = Exchange("What certificate did the pilot hold?", "A private pilot certificate [1].")
HOURS = Exchange("What was the captain's total flight time?", "2,319 hours [2].")
INJURIES = Exchange(
    "Which injuries were reported?",
    "One was serious [1].",
    "In 2019 the private pilot, who was alone, sustained serious injuries near Reno.",
)
PLAINTIFF = Exchange("What did the plaintiff claim?", "Damages [1].", "The plaintiff, Jane Q. Roe, sued for damages.")
AIRPLANE = Exchange("What happened to the airplane?", "The airplane collided with terrain near Reno [1].")
WEATHER = Exchange("What was the weather like?", "It was clear [1].")
DIRECTOR = Exchange("When did the director of Northwind resign?", "In May [1].")
ALL = [REVENUE, PLANT, TOWER, CAPITAL, POPULATION, OFFICER, CURIE, SHIPS, PURCHASE, PLAY, STAFF, PRIZE, REFUSED]
ALL += [PILOT, HOURS, INJURIES, PLAINTIFF, AIRPLANE, WEATHER, DIRECTOR]

FOLLOW_UPS = [
    # things by pronouns
    (REVENUE, "Why did it rise?", "Why did Northwind's revenue rise?"),
    (PLANT, "Was it rebuilt?", "Was the plant in Oslo rebuilt?"),
    (TOWER, "How tall is it?", "How tall is the Eiffel Tower?"),
    (TOWER, "Who designed it?", "Who designed the Eiffel Tower?"),
    (TOWER, "how many visitors does it have?", "how many visitors does the Eiffel Tower have?"),
    (CAPITAL, "How large is it?", "How large is Paris?"),
    (PURCHASE, "Did it merge with Fabrikam?", "Did Northwind merge with Fabrikam?"),
    (PURCHASE, "How much did it pay for it?", "How much did Northwind pay for it?"),
    (STAFF, "What did Einstein say about it?", "What did Einstein say about Northwind?"),
    (REFUSED, "When does it end?", "When does the warranty period of the pump end?"),
    (TOWER, "It is in which city?", "The Eiffel Tower is in which city?"),
    # owners by pronouns
    (POPULATION, "What is its capital?", "What is France's capital?"),
    (OFFICER, "What is her salary?", "What is Zoë Müller's salary?"),
    (CURIE, "Who was her husband?", "Who was Marie Curie's husband?"),
    (SHIPS, "What are their names?", "What are the companies' names?"),
    (TOWER, "what about its height?", "What about the Eiffel Tower's height?"),
    # people by pronouns
    (OFFICER, "When was she born?", "When was Zoë Müller born?"),
    (OFFICER, "How old is he?", "How old is Zoë Müller?"),
    (OFFICER, "What did she do before that?", "What did Zoë Müller do before that?"),
    (CURIE, "When did she die?", "When did Marie Curie die?"),
    (PLAY, "When did he write it?", "When did Henrik Ibsen write Hedda Gabler?"),
    (PLAY, "What else did he write?", "What else did Henrik Ibsen write?"),
    (PRIZE, "Where did he live?", "Where did Albert Einstein live?"),
    # people by what they are, in the question, the answer or its cited passage
    (PILOT, "And what injuries did he have?", "And what injuries did the pilot have?"),
    (PILOT, "When was it issued?", "When was the pilot's certificate issued?"),
    (PILOT, "What did they do then?", "What did the pilot do then?"),
    (PILOT, "And the passenger?", "What certificate did the passenger hold?"),
    (HOURS, "And what injuries did he have?", "And what injuries did the captain have?"),
    (HOURS, "What about his medical certificate?", "What about the captain's medical certificate?"),
    (INJURIES, "How old was he?", "How old was the private pilot?"),
    (INJURIES, "What else happened there?", "What else happened in Reno?"),
    (INJURIES, "What else happened in that year?", "What else happened in 2019?"),
    (PLAINTIFF, "Where does she live?", "Where does the plaintiff Jane Q. Roe live?"),
    (DIRECTOR, "How old was he?", "How old was the director of Northwind?"),
    # several by pronouns
    (SHIPS, "How many of them are green?", "How many of the companies are green?"),
    (SHIPS, "Where do they sail?", "Where do the companies sail?"),
    (STAFF, "What do they earn?", "What do the people earn?"),
    (PURCHASE, "Why did they do it?", "Why did Northwind do it?"),
    (STAFF, "How many of those work in Oslo?", "How many of the people work in Oslo?"),
    # places
    (CAPITAL, "How many people live there?", "How many people live in Paris?"),
    (PLANT, "How many people worked there?", "How many people worked in Oslo?"),
    (CURIE, "When did she move there?", "When did Marie Curie move to Warsaw?"),
    # demonstratives and definite noun phrases
    (REVENUE, "How does that compare to Contoso?", "How does Northwind's revenue compare to Contoso?"),
    (PLANT, "What else happened in that year?", "What else happened in 2025?"),
    (PLANT, "Who owns this plant?", "Who owns the plant in Oslo?"),
    (CAPITAL, "What river runs through that city?", "What river runs through Paris?"),
    (PLANT, "Why did the plant close?", "Why did the plant in Oslo close?"),
    (REVENUE, "What was the revenue in 2024?", "What was Northwind's revenue in 2024?"),
    (POPULATION, "How large is the country?", "How large is France?"),
    (STAFF, "When was the company founded?", "When was Northwind founded?"),
    (PLAY, "What is the play about?", "What is Hedda Gabler about?"),
    (PLAY, "In which year did the author die?", "In which year did Henrik Ibsen die?"),
    # fragments
    (REVENUE, "and in 2024?", "By how much did Northwind's revenue rise in 2024?"),
    (REVENUE, "What about 2023?", "By how much did Northwind's revenue rise in 2023?"),
    (REVENUE, "And Contoso's?", "By how much did Contoso's revenue rise in 2025?"),
    (REVENUE, "What about the profit?", "By how much did Northwind's profit rise in 2025?"),
    (PLANT, "and in Gdańsk?", "When did the plant in Gdańsk close?"),
    (PLANT, "What about Gdańsk?", "When did the plant in Gdańsk close?"),
    (CAPITAL, "What about Germany?", "What is the capital of Germany?"),
    (CAPITAL, "Germany?", "What is the capital of Germany?"),
    (POPULATION, "And the area?", "What is the area of France?"),
    (CURIE, "How about Pierre Curie?", "Where was Pierre Curie born?"),
    (STAFF, "And in 2020?", "How many people work at Northwind in 2020?"),
    (PRIZE, "And in Chemistry?", "Who won the Nobel Prize in Chemistry in 1921?"),
    (TOWER, "And the Atomium?", "When was the Atomium built?"),
    (WEATHER, "And the wind?", "What about the wind of the weather?"),
    # nothing of its own
    (AIRPLANE, "When did it happen?", "What happened to the airplane: when did it happen?"),
    (AIRPLANE, "Was it insured?", "Was the airplane insured?"),
    (PLANT, "Why?", "Why did the plant in Oslo close?"),
    (REVENUE, "Why?", "Why did Northwind's revenue rise in 2025?"),
    (PURCHASE, "When?", "When did Northwind buy Contoso?"),
    (OFFICER, "Why?", "Who became chief financial officer of Northwind: why?"),
    (OFFICER, "Tell me more.", "Who became chief financial officer of Northwind: tell me more."),
    (SHIPS, "How many of them?", "Which companies own ships: how many of them?"),
    (SHIPS, "Which one is bigger?", "Which companies own ships: which one is bigger?"),
    (STAFF, "Since when?", "How many people work at Northwind: since when?"),
]

ALONE = [
    "What is the capital of Germany?",
    "When did Marie Curie win her second prize?",
    "How long does it take to get a refund?",
    "Is it true that Oslo is a capital?",
    "What time is it?",
    "How do I reset my password?",
    "Who is the chief executive of Contoso?",
    "Which countries does the Rhine flow through?",
    "What happens if the invoice is late?",
    "What did the CEO say when he resigned?",
    "List all contracts that end this year.",
    "Does Fabrikam pay its employees in euros?",
    "Explain photosynthesis.",
    "When was the Treaty of Versailles signed and why was it criticised?",
    "What is the difference between TCP and UDP?",
    "How many employees are there?",
    "Is there a plant in Bergen?",
    "What are the opening hours of the museum in Bergen?",
    "What is IT support?",
    "Who was Her Majesty's first minister?",
    "When he was young, where did Ibsen live?",
    "What does the law say about data that leaves the country?",
    "Why did Rome fall?",
    "Revenue of Fabrikam in 2020",
    "How does the engine decide which sequence is next?",
    "What can happen to macros when they are nested?",
    "Which group changed its name?",
    "If two sentences are unrelated, what can happen to them?",
    "How far is it from Oxford to London?",
    "What is it called when the tide turns?",
    "Who placed these markers around the Pitt buildings?",
    "How do these stars form?",
    "Does the contractor have to insure its own tools?",
    # other languages are left alone
    "Wo kommt er her?",
    "Hva er det her?",
    "Quelle est la capitale de la France ?",
    "¿Cuándo se construyó?",
    "修理には何年かかりますか？",
]


@pytest.mark.parametrize(("before", "asked", "understood"), FOLLOW_UPS, ids=[asked for _, asked, _ in FOLLOW_UPS])
def test_a_follow_up_is_understood(before: Exchange, asked: str, understood: str) -> None:
    assert stand_alone(asked, [before]) == understood


@pytest.mark.parametrize("question", ALONE)
def test_a_question_that_stands_alone_stays_as_it_is_whatever_was_said_before(question: str) -> None:
    assert [stand_alone(question, [before]) for before in ALL] == [question] * len(ALL)


@pytest.mark.parametrize("asked", [asked for _, asked, _ in FOLLOW_UPS])
def test_the_first_question_of_a_conversation_stays_as_it_is(asked: str) -> None:
    assert stand_alone(asked, []) == asked


@pytest.mark.parametrize(("before", "understood"), [(before, text) for before, _, text in FOLLOW_UPS])
def test_what_stands_alone_by_a_name_is_not_rewritten_again(before: Exchange, understood: str) -> None:
    if ": " not in understood and not understood.startswith("What about") and not understood.endswith(" it?"):
        assert stand_alone(understood, [before]) == understood


def test_the_antecedent_may_be_some_turns_back() -> None:
    before = [TOWER, Exchange("Why is the sky blue?", "I don't know."), Exchange("How are you?", "Fine.")]

    assert stand_alone("Where did she live?", [CURIE, *before]) == "Where did Marie Curie live?"


def test_the_latest_antecedent_wins() -> None:
    assert stand_alone("How tall is it?", [PLANT, TOWER]) == "How tall is the Eiffel Tower?"
    assert stand_alone("How old is it?", [TOWER, PLANT]) == "How old is the plant in Oslo?"


def test_a_reference_that_nothing_explains_is_left() -> None:
    assert stand_alone("How old is he?", [Exchange("why?", "because.")]) == "How old is he?"


def test_a_sentence_much_longer_than_a_question_is_left() -> None:
    long = "Why did it rise " + "very " * 200 + "much?"

    assert stand_alone(long, [REVENUE]) == long


def test_each_message_is_understood_from_those_before_it() -> None:
    messages = [
        Message("assistant", "How can I help?"),
        Message("user", "How tall is the Eiffel Tower?"),
        Message("assistant", "330 metres [1]."),
        Message("user", "When was it built?"),
        Message("assistant", "In 1889 [1]."),
    ]
    exchanges = exchanges_of(messages)

    assert exchanges[-1] == Exchange("When was the Eiffel Tower built?", "In 1889 [1].")
    assert stand_alone("Who designed it?", exchanges) == "Who designed the Eiffel Tower?"


NAMES = ["Fabrikam", "Marie Curie", "Bank of England", "Zoë Müller", "NASA", "Gdańsk", "Contoso", "New York"]
SHAPES = [
    "Who founded {}?",
    "When did {} open?",
    "What is the budget of {} in {year}?",
    "How many people live near {}?",
    "Why did {} leave {other}?",
    "Which rivers flow through {}?",
    "Is {} older than {other}?",
    "Tell me about {}.",
    "  What  does {} do?\n",
]
said = st.builds(Exchange, st.text(max_size=80) | st.sampled_from([one.question for one in ALL]), st.text(max_size=80))


@given(
    shape=st.sampled_from(SHAPES),
    name=st.sampled_from(NAMES),
    other=st.sampled_from(NAMES),
    year=st.integers(1000, 2099),
    before=st.lists(said | st.sampled_from(ALL), max_size=4),
)
def test_a_question_that_names_what_it_asks_about_is_never_changed(
    shape: str, name: str, other: str, year: int, before: list[Exchange]
) -> None:
    question = shape.format(name, other=other, year=year)

    assert stand_alone(question, before) == question


@given(question=st.text(max_size=200), before=st.lists(said | st.sampled_from(ALL), max_size=4))
def test_any_text_gets_an_answer_of_bounded_length_and_the_same_one_again(
    question: str, before: list[Exchange]
) -> None:
    understood = stand_alone(question, before)

    assert len(understood) <= max(600, len(question))
    assert bool(understood.strip()) == bool(question.strip())
    assert stand_alone(question, before) == understood
