"""Questions are drafted by rule: well-formed ones of sentences that say something by themselves, and no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.understanding.documents.asking import wanted_overview
from app.suggestions.drafting import asks_for_whole, proposals
from app.suggestions.rows import row_drafts
from app.suggestions.subjects import Spelling
from retrieval.types import Chunk

FILLER = "This is what was said of it by the people of the town, and it is not more than that."


def chunk(text: str, *, start: int = 0) -> Chunk:
    return Chunk(
        key=1,
        id="chk_1",
        document_id="doc_1",
        version=1,
        collection_id="col_1",
        filename="line.txt",
        external_id=None,
        ordinal=0,
        text=text,
        start_char=start,
        end_char=start + len(text),
        page_start=None,
        page_end=None,
        heading_path=(),
        token_count=10,
    )


def drafted(sentence: str) -> dict[str, str]:
    """The questions of one sentence among others, each with the words that answer it."""
    text = f"{FILLER} {sentence}"
    found = proposals([chunk(text, start=100)], limit=12)
    for one in found:
        assert one.sentence.start_char <= one.answer.start_char < one.answer.end_char <= one.sentence.end_char
    return {one.question: text[one.answer.start_char - 100 : one.answer.end_char - 100] for one in found}


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        (
            "The ferry was built in 1987.",
            "When was the ferry built?",
            "1987",
        ),
        (
            "The ferry was built in 1987 by a yard, they say.",
            "When was the ferry built by a yard?",
            "1987",
        ),
        (
            "In 1987, the old line was closed.",
            "When was the old line closed?",
            "1987",
        ),
        (
            "The harbour office opened on 4 May 2012.",
            "When did the harbour office open?",
            "4 May 2012",
        ),
        (
            "The town acquired the boat in 1990.",
            "When did the town acquire the boat?",
            "1990",
        ),
        (
            "Founded in 1912, the yard builds boats.",
            "When was the yard founded?",
            "1912",
        ),
        (
            "The fleet has three ferries.",
            "How many ferries does the fleet have?",
            "three",
        ),
        (
            "The line carried 41,000 passengers in its first year.",
            "How many passengers did the line carry in its first year?",
            "41,000",
        ),
        (
            "The bridge is 300 metres long.",
            "How long is the bridge?",
            "300 metres",
        ),
        (
            "A crossing takes 25 minutes.",
            "How long does a crossing take?",
            "25 minutes",
        ),
        (
            "A single ticket costs 4 euros.",
            "How much does a single ticket cost?",
            "4 euros",
        ),
        (
            "Total fares rose by 12% in 2022.",
            "By how much did total fares rise in 2022?",
            "12%",
        ),
        (
            "Twelve people were hurt.",
            "How many people were hurt?",
            "Twelve",
        ),
        (
            "There are two slips at the harbour.",
            "How many slips are there at the harbour?",
            "two",
        ),
        (
            "The office is located on the north quay.",
            "Where is the office located?",
            "on the north quay",
        ),
        (
            "The ferry was designed by Anna Lund.",
            "Who designed the ferry?",
            "Anna Lund",
        ),
        (
            "A slipway is a ramp on which boats are drawn from the water.",
            "What is a slipway?",
            "a ramp on which boats are drawn from the water.",
        ),
        (
            "The purpose of the line is to join the island and the town.",
            "What is the purpose of the line?",
            "to join the island and the town.",
        ),
        (
            "The line's season ticket includes bicycles and one dog.",
            "What does the line's season ticket include?",
            "bicycles and one dog.",
        ),
        (
            "In this paper, we show that a short line is kept by few people.",
            "What do the authors show?",
            "a short line is kept by few people.",
        ),
        (
            "We propose a new slip at the north quay.",
            "What do the authors propose?",
            "a new slip at the north quay.",
        ),
        (
            "The old harbour line relies on two crews of four people.",
            "What does the old harbour line rely on?",
            "two crews of four people.",
        ),
        (
            "The harbour board ordered a survey of both slips on 4 May 2012.",
            "When did the harbour board order a survey of both slips?",
            "4 May 2012",
        ),
        (
            "“Season” means the months from May to September.",
            "What does “Season” mean?",
            "the months from May to September.",
        ),
    ],
)
def test_a_sentence_becomes_a_question(sentence: str, question: str, answer: str) -> None:
    assert drafted(sentence).get(question) == answer


@pytest.mark.parametrize(
    "sentence",
    [
        "It was built in 1987.",
        "This boat was built in 1987.",
        "They have three ferries.",
        "The board said the line was closed in 1987.",
        "The result is a good line.",
        "The boat is a great success for all who love her.",
        "Anna Lund is the pride of the town.",
        "Running the line was a task for the brave.",
        "However good it is, the line was closed.",
        "We think that the line was closed.",
        "We show it.",
        "The town acquired in 1990.",
    ],
)
def test_a_sentence_that_points_elsewhere_or_is_a_clause_becomes_none(sentence: str) -> None:
    assert drafted(sentence) == {}


def test_a_question_that_the_text_asks_is_taken_with_the_sentence_behind_it() -> None:
    found = drafted("Where can I buy a ticket? Tickets are sold on board by the crew of the boat.")

    assert found == {"Where can I buy a ticket?": "Tickets are sold on board by the crew of the boat."}


def test_rows_of_tables_become_questions_for_their_values() -> None:
    pairs = "Route: Harbour | Fare: 3 EUR | Note: none"
    years = "Item | 2022 | 2021\nTotal ticket sales | 82,959 | 81,434"
    found = proposals([chunk(f"{FILLER}\n\n{pairs}\n\n{FILLER}\n\n{years}")], limit=12)

    assert {one.question for one in found} == {
        "What is the fare for Harbour?",
        "What were total ticket sales in 2022?",
    }


@pytest.mark.parametrize(
    ("row", "questions"),
    [
        ("Year: 2019 | Wild Ducks: 120 | Swans: 80", ["What were Wild Ducks in 2019?", "What were Swans in 2019?"]),
        ("2019 | Wild Ducks: 120", ["What were Wild Ducks in 2019?"]),
        ("Year: 2019 | Ticket Sales: 120", ["What were ticket sales in 2019?"]),
        ("Year: 2019 | Month: May | Wild Ducks: 120", []),
        ("Team: Blues | Location: Bergen | Cups: 1", ["What is the location of Blues?"]),
        ("#: 1 | Title: A Ferry Tale | Author: Ada Strand", ["Who is the author of A Ferry Tale?"]),
        ("Part | ID: 7 | Question: When does it sail? | Answer: At noon.", ["When does it sail?"]),
        ("Question: The crew | Answer: of seven", []),
        ("2019 | Part: 4 | 7", []),
    ],
)
def test_rows_that_repeat_the_names_of_their_columns_are_asked_for_what_people_look_up(
    row: str, questions: list[str]
) -> None:
    spelling = Spelling("The sale of a ticket is final, and ticket sales were high.")

    assert [draft.question for draft in row_drafts(row, above=(), spelling=spelling)] == questions


cells = st.lists(
    st.sampled_from(
        ["", " ", "Year: 2019", "Question: Is it so?", "Answer: No", "Name: Ada", "2019", "Fare: 3 EUR", "x:"]
    ),
    max_size=6,
)


@given(cells=cells, framed=st.booleans())
def test_any_row_is_read_and_its_answers_are_cells(cells: list[str], framed: bool) -> None:
    row = " | ".join(cells)
    row = f"| {row} |" if framed else row

    for draft in row_drafts(row, above=["Item | 2022 | 2021"], spelling=Spelling("")):
        assert row[draft.answer.start_char : draft.answer.end_char].strip()


def test_a_table_of_too_few_words_to_tell_its_language_is_asked_for_names_that_are_ours() -> None:
    named, bare = "Year: 2019 | Ducks: 120", "2019 | Umsatz: 120"

    assert [one.question for one in proposals([chunk(named)], limit=12)] == ["What were Ducks in 2019?"]
    assert proposals([chunk(bare)], limit=12) == []
    assert proposals([chunk(f"{bare} | Anteil der Sparte: 5")], limit=12) == []


@pytest.mark.parametrize(
    "text",
    [
        "Die Fähre wurde 1987 gebaut. Der Zweck der Linie ist es, die Insel mit der Stadt zu verbinden.",
        "Lorem ipsum dolor sit amet, consetetur sadipscing elitr, sed diam nonumy eirmod tempor.",
        "",
    ],
)
def test_a_document_that_is_not_in_english_gets_none(text: str) -> None:
    assert proposals([chunk(text)], limit=12) == []


def test_a_long_document_is_read_in_part_and_the_limit_is_kept() -> None:
    sentences = " ".join(f"The boat{name} was built in {1900 + at}." for at, name in enumerate("abcdefghijklmnopq"))
    found = proposals([chunk(f"{FILLER} {sentences}")] * 500, limit=12)

    assert len(found) == 12


def test_a_sentence_that_is_too_long_to_read_at_a_glance_becomes_none() -> None:
    fits, longer = (f"The ferry was built in 1987 and {'was loved by all who used it, ' * count}" for count in (3, 11))

    assert drafted(f"{fits}they say.")
    assert drafted(f"{longer}they say.") == {}


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (FILLER, "What is this document about?"),
        ("Die Fähre wurde 1987 gebaut, und sie ist der Stolz der Linie.", "Worum geht es in diesem Dokument?"),
        ("Le bac a été construit en 1987, et il est la fierté de la ligne.", "De quoi parle ce document ?"),
        ("El transbordador se construyó en 1987 y es el orgullo de la línea.", "¿De qué trata este documento?"),
        ("Färjan byggdes 1987 och är linjens stolthet.", "What is this document about?"),
        ("", "What is this document about?"),
    ],
)
def test_what_a_document_is_about_is_asked_in_a_language_that_is_understood(text: str, question: str) -> None:
    asked = asks_for_whole([chunk(text)])
    wanted = wanted_overview(asked)

    assert asked == question
    assert wanted is not None
    assert wanted.at_hand
