"""retrieval.tantivy_fields cuts texts as tantivy's own tokenizer by regular expression does, in less time."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from retrieval.tantivy_fields import LexicalEntry, TantivyDocuments, composed, words_analyzer


def text_field(text: str, heading: str = "") -> str:
    """What the word field of a document holds."""
    (value,) = TantivyDocuments().of(LexicalEntry(1, "t", "c", heading, text)).to_dict()["text"]
    assert isinstance(value, str)
    return value


@given(text=st.text(st.characters(exclude_categories=["Cn", "Cs"]), max_size=60))
@example(text="it's E-4711x, naïve;Straße\u00a0Zu\u0308rich\u2028हिन्दी में ²³ snake_case\x1fend")
def test_terms_are_runs_of_letters_digits_and_marks(text: str) -> None:
    builder = TextAnalyzerBuilder(Tokenizer.regex(r"[\p{L}\p{N}\p{M}]+"))
    for each in (Filter.remove_long(1024), Filter.lowercase(), Filter.ascii_fold(), Filter.stemmer("english")):
        builder = builder.filter(each)

    assert words_analyzer().analyze(text_field(text)) == builder.build().analyze(composed(text))


def test_a_heading_counts_three_times() -> None:
    terms = words_analyzer().analyze(text_field("some text", heading="Part-two"))

    assert terms == ["part", "two"] * 3 + ["some", "text"]


@pytest.mark.parametrize("text", ["", "\ud800", "a\ud800b", "\0"])
def test_any_text_becomes_a_document(text: str) -> None:
    assert all(unicodedata.category(character)[0] in "LNM" for character in "".join(text_field(text).split()))
