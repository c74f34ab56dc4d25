"""The tantivy schema of a chunk, and the analysis of text into terms."""

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from retrieval.terms import inner_parts

if TYPE_CHECKING:
    import tantivy

FORMAT = 1  # of fields and analysis; another one is built anew
_HEADING_WEIGHT = 3  # times a heading's words count: chosen on four sets of questions


@dataclass(frozen=True, slots=True)
class LexicalEntry:
    """A chunk with the fields of the keyword index."""

    key: int
    tenant_id: str
    collection_id: str
    heading: str
    text: str


class TantivyDocuments:
    """Converts chunks to tantivy documents. Safe to call from several threads."""

    def __init__(self) -> None:
        from tantivy import Document

        self._new = Document

    def of(self, entry: LexicalEntry) -> "tantivy.Document":
        """The fields of one chunk; heading words count three times."""
        document = self._new()
        document.add_integer("key", entry.key)
        document.add_text("tenant", entry.tenant_id)
        document.add_text("collection", entry.collection_id)
        document.add_text("text", plain_words(entry))
        document.add_text("part", " ".join(plain_parts(entry)))
        return document


def plain_words(entry: LexicalEntry) -> str:
    """The words of a chunk between blanks, those of its heading three times."""
    heading, text = composed(entry.heading), composed(entry.text)
    return f"{heading} ".translate(_blanks()) * _HEADING_WEIGHT + text.translate(_blanks())


def plain_parts(entry: LexicalEntry) -> list[str]:
    """The inner parts of a chunk (`retrieval.terms.inner_parts`)."""
    return inner_parts(f"{composed(entry.heading)} {composed(entry.text)}")


class _Blanks(dict[int, int]):
    """For `str.translate`: letters, digits and marks stay, all else becomes a blank. Filled lazily.

    tantivy's tokenizer by regular expression takes half of the time of an index; cutting at blanks takes a quarter
    of that.
    """

    def __missing__(self, code: int) -> int:
        kept = code if unicodedata.category(chr(code))[0] in "LNM" else ord(" ")
        self[code] = kept
        return kept


@cache
def _blanks() -> _Blanks:
    return _Blanks()


def schema() -> "tantivy.Schema":
    """Key, tenant and collection to restrict a search by; words and inner parts to rank by."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("key", indexed=True, fast=True)
    builder.add_text_field("tenant", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("collection", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("text", tokenizer_name="words", index_option="freq")
    builder.add_text_field("part", tokenizer_name="parts", index_option="freq")
    return builder.build()


def words_analyzer() -> "tantivy.TextAnalyzer":
    """Words between blanks, in lower case, without diacritics, stemmed by Porter's English rules."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.whitespace())
    for each in (Filter.remove_long(1024), Filter.lowercase(), Filter.ascii_fold(), Filter.stemmer("english")):
        builder = builder.filter(each)
    return builder.build()


def parts_analyzer() -> "tantivy.TextAnalyzer":
    """Parts between blanks, as they are."""
    from tantivy import TextAnalyzerBuilder, Tokenizer

    return TextAnalyzerBuilder(Tokenizer.whitespace()).build()


def composed(text: str) -> str:
    """Letters and their accents as one character each; half a surrogate pair becomes a question mark."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode()
