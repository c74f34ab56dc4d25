"""tests.bench.ingest.fidelity: its word counts and longest common subsequence are right."""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from ingestion.builder import TextBuilder
from ingestion.types import BlockKind, ExtractionLimits, MediaType
from tests.bench.ingest.fidelity import common_subsequence, read_words, share, words

some_words = st.lists(st.sampled_from("abcd"), max_size=12)


@given(some_words, some_words)
def test_the_common_subsequence_is_the_longest(first: list[str], second: list[str]) -> None:
    @cache
    def longest(i: int, j: int) -> int:
        if i == len(first) or j == len(second):
            return 0
        if first[i] == second[j]:
            return 1 + longest(i + 1, j + 1)
        return max(longest(i + 1, j), longest(i, j + 1))

    assert common_subsequence(first, second) == longest(0, 0)


def test_markdown_s_syntax_is_no_word() -> None:
    text = "# A **b**c [d](http://x.y/z) ![e](f) [[1]](#g(h)) <b>i</b> <!-- image --> `j` snake\\_case &amp; **k**"

    assert words(text) == ["a", "bc", "d", "e", "1", "i", "j", "snake", "case", "k"]


def test_words_are_counted_as_often_as_they_occur() -> None:
    assert share(["a", "b"], ["a", "a", "b", "c"]) == 0.5
    assert share(["a"], []) == 1


def test_a_column_s_name_in_every_row_counts_once() -> None:
    builder = TextBuilder(ExtractionLimits())
    for row in ("city | people", "city: Oslo | people: 7", "city: Bergen | ratio: 1"):
        builder.append(BlockKind.TABLE_ROW, row)
    builder.append(BlockKind.PARAGRAPH, "city: a word like any other")
    extraction = builder.build(MediaType.CSV)

    assert read_words(extraction, labels=False) == words("city people Oslo 7 Bergen ratio 1 city a word like any other")
