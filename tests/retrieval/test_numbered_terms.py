"""retrieval.numbered_terms: terms as numbers, of chunks and of questions; retrieval.bm25 over what they give."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.bm25 import Postings, ScopeTotals, ranked
from retrieval.numbered_terms import LEVELS, Term, asked, asked_inside, number_of, numbered
from retrieval.tantivy_fields import LexicalEntry
from tests.bm25 import bm25, lucene


def entry(text: str, *, heading: str = "", tenant_id: str = "t") -> LexicalEntry:
    return LexicalEntry(key=1, tenant_id=tenant_id, collection_id="c", heading=heading, text=text)


def levels(term: Term, terms: list[int], *, tenant_id: str = "t") -> list[int]:
    """The levels at which numbers hold a term."""
    return [level for level in range(len(LEVELS)) if number_of(tenant_id, term) + level in terms]


def test_a_term_has_a_number_for_each_step_of_its_count() -> None:
    found = numbered(entry("fig fig figs plum " + "nut " * 13, heading="Plum"))

    assert found.words == 3 + 4 + 13
    assert levels(("word", "fig"), found.numbers) == [0, 1, 2]
    assert levels(("word", "plum"), found.numbers) == [0, 1, 2, 3], "a heading's word counts three times"
    assert levels(("word", "nut"), found.numbers) == list(range(9)), "12 and not 16"
    assert levels(("word", "pear"), found.numbers) == []


def test_tenants_and_fields_have_numbers_of_their_own() -> None:
    text = entry("getUserById 学習")
    mine, other = numbered(text), numbered(entry(text.text, tenant_id="u"))

    assert set(mine.numbers).isdisjoint(other.numbers)
    assert levels(("part", "学習"), mine.numbers) == levels(("part", "use"), mine.numbers) == [0]
    assert levels(("word", "use"), mine.numbers) == []


@given(text=st.text(max_size=60), heading=st.text(max_size=20))
def test_any_text_has_numbers_that_fit_in_64_bits(text: str, heading: str) -> None:
    found = numbered(entry(text, heading=heading))

    assert found.numbers == sorted(set(found.numbers))
    assert all(-(2**63) <= number < 2**63 for number in found.numbers)
    assert len(found.numbers) <= found.words + found.parts
    assert all(len(group) == 1 for group in asked(text))


@pytest.mark.parametrize("query", [" ".join(f"w{number}x{number}y{number}" for number in range(200)), "学習機械" * 900])
def test_a_question_asks_for_some_hundred_terms_at_most(query: str) -> None:
    for groups in (asked(query), asked_inside(query)):
        assert sum(map(len, groups)) <= 256


def test_inside_of_words_all_triples_of_one_word_are_asked_for() -> None:
    assert asked_inside("etUs ab") == [[("part", "etu"), ("part", "tus")]]
    assert asked_inside("etUs 学習") == []


counts = st.dictionaries(st.sampled_from("abc"), st.sampled_from(LEVELS), max_size=3)


@given(chunks=st.lists(counts, min_size=1, max_size=6), query=st.lists(st.sampled_from("abc"), min_size=1, unique=True))
def test_scores_of_postings_are_bm25(chunks: list[dict[str, int]], query: list[str]) -> None:
    held = {key: Counter(one) for key, one in enumerate(chunks, start=1)}
    lengths = {key: one.total() + 1 for key, one in held.items()}
    postings = {("word", word): of_counts(word, held, lengths) for word in "abc" if any(word in one for one in chunks)}
    totals = ScopeTotals(len(held), {"word": sum(lengths.values()) / len(held), "part": 1.0})
    holding = {term: len(its.keys) for term, its in postings.items()}

    keys, scores = ranked([[("word", word)] for word in query], postings, holding=holding, totals=totals)  # type: ignore[arg-type]

    found = list(zip(keys.tolist(), scores.tolist(), strict=True))
    assert dict(found) == pytest.approx(bm25(held, lengths, query, scope=list(held), weigh=lucene))
    assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))


def of_counts(word: str, held: dict[int, Counter[str]], lengths: dict[int, int]) -> Postings:
    """As a database returns them: the keys at each level, the last ones first."""
    at = [[key for key in reversed(held) if held[key][word] >= least] for least in LEVELS]
    first = np.array(at[0], np.int64)
    more = [(level, np.array(keys, np.int64)) for level, keys in enumerate(at) if level and keys]
    return Postings.of_levels(first, np.array([lengths[key] for key in at[0]], np.int64), more)
