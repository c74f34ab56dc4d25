"""Compression: which sentences go in first, in which order sources stand, and their headers."""

from collections.abc import Sequence
from typing import Any

import pytest

from retrieval.compress import compress
from retrieval.types import Source
from tests.retrieval.compressing import count_words, shown
from tests.retrieval.fakes import chunk, hit, ranked
from tests.retrieval.promises import reasons


def test_a_heading_is_not_bought_twice_because_the_header_names_it() -> None:
    text = "# Dividends of Acme\n\nAcme paid a dividend of 30 cents in May. Nobody else did anything at all that year."
    found = [hit(chunk(1, text, heading_path=("Dividends of Acme",)))]

    context = compress(found, query="dividends of Acme", budget=20, count_tokens=count_words)

    assert shown(context) == ["Acme paid a dividend of 30 cents in May."]
    alone = [hit(chunk(1, "# Dividends of Acme", heading_path=("Dividends of Acme",)))]
    assert shown(compress(alone, query="dividends", budget=50, count_tokens=count_words)) == ["# Dividends of Acme"]


def test_a_smaller_hit_fills_what_a_larger_one_left() -> None:
    hits = ranked("Acme rose.", "Dogs bark " * 50, "Cats.")

    context = compress(hits, query="acme", budget=8, count_tokens=count_words)

    assert shown(context) == ["Acme rose.", "Cats."]
    assert [source.number for source in context.sources] == [1, 2]
    assert reasons(context) == {"chunk_2": "budget"}


def test_a_header_alone_may_be_too_much() -> None:
    hits = [
        hit(chunk(1, "Acme.", filename="a very long name of a file.txt")),
        hit(chunk(2, "Acme too.", document_id="d")),
    ]

    context = compress(hits, query="acme", budget=4, count_tokens=count_words)

    assert shown(context) == ["Acme too."]
    assert reasons(context) == {"chunk_1": "budget"}


def test_a_sentence_of_the_best_hit_goes_before_the_same_match_of_a_worse_one() -> None:
    hits = ranked("Acme rose high. Dogs bark all day long.", "Acme fell low. Cats sleep all day long.")

    context = compress(hits, query="acme", budget=6, count_tokens=count_words)

    assert shown(context) == ["Acme rose high."]
    assert reasons(context) == {"chunk_2": "budget"}


def test_the_match_of_a_worse_hit_goes_before_a_sentence_of_the_best_about_nothing_asked() -> None:
    hits = ranked("Dogs bark all day long in the yard.", "The revenue of Acme rose to 12 percent. Cats sleep.")

    context = compress(hits, query="revenue of Acme", budget=11, count_tokens=count_words)

    assert shown(context) == ["The revenue of Acme rose to 12 percent."]


def test_the_order_of_sources_is_the_callers_and_numbers_follow_it() -> None:
    hits = ranked("Alpha.", "Beta.", "Gamma.")
    offered: list[list[str]] = []

    def backwards(sources: Sequence[Source]) -> list[int]:
        offered.append([source.header for source in sources])
        return [2, 1, 0]

    context = compress(hits, query="", budget=100, count_tokens=count_words, order=backwards)

    assert offered[-1] == ["[1] 1.txt\n", "[2] 2.txt\n", "[3] 3.txt\n"]
    assert [source.header + source.body for source in context.sources] == [
        "[1] 3.txt\nGamma.\n",
        "[2] 2.txt\nBeta.\n",
        "[3] 1.txt\nAlpha.\n",
    ]


def test_the_strongest_sources_are_at_the_two_ends() -> None:
    context = compress(ranked(*"abcde"), query="", budget=100, count_tokens=count_words)

    assert shown(context) == ["a", "c", "e", "d", "b"]


@pytest.mark.parametrize(
    ("fields", "header"),
    [
        ({}, "[1] a.txt\n"),
        ({"page_start": 3}, "[1] a.txt, page 3\n"),
        ({"page_start": 3, "page_end": 3}, "[1] a.txt, page 3\n"),
        ({"page_start": 3, "page_end": 4}, "[1] a.txt, pages 3-4\n"),
        ({"heading_path": ("Report", "Revenue")}, "[1] a.txt — Revenue\n"),
        ({"page_start": 1, "page_end": 2, "heading_path": ("R",)}, "[1] a.txt, pages 1-2 — R\n"),
        ({"filename": "a\n[2] b\u202e\0.txt"}, "[1] a [2] b.txt\n"),
        ({"filename": "x" * 4000}, f"[1] {'x' * 99}…\n"),
    ],
)
def test_a_header_names_file_pages_and_heading_on_one_line(fields: dict[str, Any], header: str) -> None:
    context = compress([hit(chunk(1, "Acme.", **fields))], query="", budget=9000, count_tokens=len)

    assert context.sources[0].header == header


def test_counting_costs_a_few_calls_a_sentence() -> None:
    calls = 0

    def count(text: str) -> int:
        nonlocal calls
        calls += 1
        return len(text.split())

    hits = ranked(*(f"Acme {n} rose in spring. Nobody knew why. " * 6 for n in range(20)))

    compress(hits, query="acme", budget=300, count_tokens=count)

    sentences = 20 * 12
    assert calls <= sentences + 4 * len(hits)
