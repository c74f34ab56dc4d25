"""A phrase is found whatever its case, its line breaks and its hyphenation, and in linear time."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.documents.occurrences import MOST_PHRASE, find_phrase, pages_of, snippet
from retrieval.types import Span


def found(text: str, phrase: str) -> list[str]:
    return [text[span.start_char : span.end_char] for span in find_phrase(text, phrase, most=100).spans]


@pytest.mark.parametrize(
    ("text", "phrase", "words"),
    [
        ("REVENUE rose; revenue fell.", "Revenue", ["REVENUE", "revenue"]),
        ("net\n  revenue", "net revenue", ["net\n  revenue"]),
        ("net revenue", " net   revenue ", ["net revenue"]),
        ("The rev-\nenue rose.", "revenue", ["rev-\nenue"]),
        ("a well-\nknown and a well-known", "well-known", ["well-\nknown", "well-known"]),
        ("re\u00advenue", "revenue", ["re\u00advenue"]),
        ("Straße", "STRASSE", ["Straße"]),
        ("the ﬁne print", "fine", ["ﬁne"]),
        ("r\u00e9sum\u00e9, re\u0301sume\u0301", "résumé", ["r\u00e9sum\u00e9", "re\u0301sume"]),
        ("they don’t say “so”", 'don\'t say "so"', ["don’t say “so”"]),
        ("from 2020-2024", "2020-2024", ["2020-2024"]),
        ("this - that", "this - that", ["this - that"]),
        ("the pre-war years", "pre-", ["pre"]),
        ("aaaa", "aa", ["aa", "aa"]),
        ("Москва", "МОСКВА", ["Москва"]),
        ("😀 smile 😀", "😀", ["😀", "😀"]),
        ("2020-2024", "20202024", []),
        ("of the", "ofthe", []),
        ("anything", " \n ", []),
        ("anything", "\u00ad", []),
        ("", "a", []),
    ],
)
def test_a_phrase_is_found_as_a_reader_means_it(text: str, phrase: str, words: list[str]) -> None:
    assert found(text, phrase) == words


def test_what_is_beyond_the_limit_is_counted() -> None:
    occurrences = find_phrase("lake " * 50, "lake", most=3)

    assert [span.start_char for span in occurrences.spans] == [0, 5, 10]
    assert occurrences.total == 50


@given(
    before=st.integers(131_072 - 40, 131_072 + 40),
    phrase=st.sampled_from(["revenue", "net revenue", "well-known"]),
    gap=st.sampled_from([" ", "\n", " \n\n "]),
)
def test_a_phrase_over_the_end_of_a_block_is_found_once(before: int, phrase: str, gap: str) -> None:
    printed = phrase.replace(" ", gap).replace("-", "-\n")
    text = "x" * (before - 1) + "." + printed + ". " + "y" * 50

    assert found(text, phrase) == [printed]


@given(text=st.text(alphabet="ab- \n\u00adßé", max_size=60), phrase=st.text(alphabet="ab- ", min_size=1, max_size=4))
def test_occurrences_are_in_order_and_apart_and_as_many_as_are_counted(text: str, phrase: str) -> None:
    spans = find_phrase(text, phrase, most=1000).spans

    assert all(span.start_char < span.end_char <= len(text) for span in spans)
    assert all(one.end_char <= other.start_char for one, other in itertools.pairwise(spans))
    assert find_phrase(text, phrase, most=1000).total == len(spans)


@pytest.mark.parametrize(
    ("repeated", "phrase"),
    [
        ("a", "a" * (MOST_PHRASE - 1) + "b"),
        (" ", "a b"),
        ("-\n", "a-b"),
        ("ab" * 99 + "a", "ab" * 99 + "b"),
        ("\ufdfa", "x"),
        ("e", "e"),
        ("\u00ad", "a"),
    ],
    ids=["one letter", "white space", "hyphens", "nearly the phrase", "a ligature", "all of it", "invisible"],
)
def test_a_hostile_text_takes_linear_time(repeated: str, phrase: str) -> None:
    def seconds(length: int) -> float:
        text = (repeated * (length // len(repeated) + 1))[:length]
        started = time.process_time()
        find_phrase(text, phrase, most=100)
        return time.process_time() - started

    seconds(200_000)
    assert min(seconds(1_600_000) for _ in range(2)) < 24 * max(min(seconds(200_000) for _ in range(3)), 0.01)


def test_a_snippet_is_one_line_cut_between_words() -> None:
    text = "The ships of the line\nwere painted blue in the spring of that year."
    at = text.index("painted")

    assert snippet(text, Span(at, at + 7), around=12) == "…line were painted blue in…"
    assert snippet("short", Span(0, 5)) == "short"


def test_a_span_knows_its_pages() -> None:
    pages = [(1, 0, 10), (2, 12, 20), (3, 22, 30)]

    assert pages_of(Span(2, 5), pages) == (1, 1)
    assert pages_of(Span(8, 25), pages) == (1, 3)
    assert pages_of(Span(10, 12), pages) == (None, None)
    assert pages_of(Span(0, 1), []) == (None, None)
