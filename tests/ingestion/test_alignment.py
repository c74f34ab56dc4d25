"""ingestion.alignment: each character is found where it is printed, and a repeated one at the right place."""

import time

from hypothesis import given, settings

from ingestion.alignment import NOWHERE, aligned, is_found
from tests.ingestion.texts import hostile_text

ONE = "Rainfall in the northern district fell by a third between the two surveys."
TWO = "The wells were deepened twice, and the council paid for the second time only."
THREE = "Nobody measured the water that the tanneries took from the river at night."


def found_text(text: str, printed: str, passage: str, *, from_: int = 0) -> str:
    """What is printed where `passage`, which stands in `text`, is found."""
    start = text.index(passage, from_)
    places = [place for place in aligned(text, printed)[start : start + len(passage)] if place != NOWHERE]
    return "".join(printed[place] for place in places)


def bare(text: str) -> str:
    return "".join(text.split())


def test_a_text_as_it_is_printed_is_found_character_by_character() -> None:
    text = f"{ONE} {TWO}"
    printed = f"{ONE}\r\n{TWO}"

    found = aligned(text, printed)

    assert all(text[at] == printed[place] for at, place in enumerate(found) if place != NOWHERE)
    assert [at for at, place in enumerate(found) if place == NOWHERE] == [at for at, c in enumerate(text) if c == " "]
    assert is_found(text, found, 0, len(text))


def test_what_is_printed_and_left_out_of_the_text_moves_nothing() -> None:
    printed = f"Annual report 2024 Rain\r\n{ONE}\r\nPage 7 of 9\r\n{TWO}\r\n7"
    text = f"{ONE} {TWO}"

    found = aligned(text, printed)

    assert is_found(text, found, 0, len(text))
    assert found[0] == printed.index(ONE)
    assert found_text(text, printed, TWO) == bare(TWO)


def test_columns_in_another_order_are_found() -> None:
    printed = f"{THREE}\r\n{ONE}\r\n{TWO}"
    text = f"{ONE} {TWO}\n\n{THREE}"

    assert is_found(text, aligned(text, printed), 0, len(text))
    for sentence in (ONE, TWO, THREE):
        first = aligned(text, printed)[text.index(sentence)]
        assert first == printed.index(sentence)


def test_a_sentence_that_stands_there_twice_is_the_right_one() -> None:
    text = f"{ONE} {TWO} {THREE} {TWO} Then it rained again, and nobody asked why for years."
    printed = text.replace(" ", "\r\n", 5)
    second = text.rindex(TWO)

    found = aligned(text, printed)

    assert found[second] == printed.rindex(TWO)
    assert found[text.index(TWO)] == printed.index(TWO)
    assert is_found(text, found, 0, len(text))


def test_the_same_sentence_over_and_over_is_found_in_order() -> None:
    text, printed = " ".join([ONE] * 6), "\r\n".join([ONE] * 6)

    found = aligned(text, printed)

    assert found[len(ONE) * 3 + 3] == printed.index(ONE, len(ONE) * 3)
    assert is_found(text, found, 0, len(text))


def test_words_that_break_at_a_lines_end_are_found_whole() -> None:
    printed = "The compli\ufffe\r\ncated well-\r\nknown pump"
    text = "The complicated well-known pump"

    assert is_found(text, aligned(text, printed), 0, len(text))
    assert found_text(text, printed, "complicated") == "complicated"
    assert found_text(text, printed, "well-known") == "well-known"


def test_ligatures_are_their_letters() -> None:
    printed = "The \ufb01rst of\ufb01ce \ufb02ooded."

    assert is_found("The first office flooded.", aligned("The first office flooded.", printed), 0, 25)
    assert found_text("The first office flooded.", printed, "office") == "of\ufb01\ufb01ce"


def test_cells_of_a_row_are_found_and_their_rules_need_not_be() -> None:
    text, printed = "Oslo | 717,710 | -4\nBergen | 291,940 | -2", "Oslo 717,710 -4\r\nBergen 291,940 -2"

    assert is_found(text, aligned(text, printed), 0, len(text))
    assert found_text(text, printed, "291,940 | -2") == "291,940-2"


def test_what_is_not_printed_is_not_found() -> None:
    text = f"{ONE} {TWO}"

    found = aligned(text, f"{ONE} {THREE}")

    assert is_found(text, found, 0, len(ONE))
    assert not is_found(text, found, len(ONE) + 1, len(text))
    assert set(aligned(ONE, "")) == {NOWHERE}
    assert not is_found(ONE, aligned(ONE, ""), 0, len(ONE))


def test_a_letter_read_otherwise_between_others_is_found_with_them() -> None:
    text = ONE.replace("district", "diztrict")

    assert is_found(text, aligned(text, ONE), 0, len(text))


def test_a_page_of_a_few_letters_is_found() -> None:
    assert is_found("Hi 5", aligned("Hi 5", "Hi 5"), 0, 4)
    assert aligned("", "x") == []


def test_a_text_beyond_the_basic_plane_is_found_by_code_points() -> None:
    text, printed = f"😀 {ONE} 🎉", f"😀\r\n{ONE}\r\n🎉"

    found = aligned(text, printed)

    assert found[text.index("R")] == printed.index("R")
    assert is_found(text, found, 0, len(text))


@settings(deadline=None)
@given(text=hostile_text, printed=hostile_text)
def test_any_two_texts_are_aligned_each_character_once(text: str, printed: str) -> None:
    found = aligned(text, printed)

    assert len(found) == len(text)
    assert all(place == NOWHERE or 0 <= place < len(printed) for place in found)


def test_long_pages_take_no_time_to_speak_of() -> None:
    page = " ".join(f"{ONE} {number}" for number in range(600))
    dull = "a " * 20_000

    started = time.process_time()
    aligned(page, page[::-1] + page)
    aligned(dull, dull)

    assert time.process_time() - started < 5
