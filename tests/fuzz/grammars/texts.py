"""Texts with odd characters and marks, through the parts of an answer: footnotes, plain text, follow-ups, units."""

import time
from collections import Counter
from itertools import pairwise

from hypothesis import strategies as st

from app.answering.formats.plain_text import PlainText
from app.answering.generating.footnote_writer import FootnoteWriter
from app.answering.understanding.followup.antecedents import Exchange
from app.answering.understanding.followup.rules import stand_alone
from app.api.excerpts import MOST_CHARS, excerpt_of
from retrieval.sentences import sentence_spans
from retrieval.units import units_of
from tests.app.answering.sources import REPORT, source
from tests.fuzz.target import Case, cut_up

_LONGEST_S = 15
_REFUSAL = "I don't know."
_odd = st.sampled_from(
    ["\n", "\r", "\r\n", "\u2028", "\x85", "\0", "\x1f", "\u200b", "\u202e", "e\u0301", "İ", "ß", "ŉ", "ﬁ", "🙂",
     "👩‍👩‍👧", "Ⅻ",
     "١", "²", "，", "。", "ｱ", "\ufeff", "\U000e0041", "  ", "\t", "’", "'s", "-"]
)  # fmt: skip
_marks = st.sampled_from(
    ["[1]", "[2]", "[9]", "[0]", "[01]", "[1, 2]", "[1,2,9]", "[1-2]", "[^1]", "[１]", "[²]", "[1", "1]", "[[1]]",
     "[[9]1]",
     "[ 1 ]", "[1;2]", "[" + "9" * 400 + "]", "[" + "1, " * 200, "[]", "[", "]", "[-1]", "[1](x)", "【1】", "(1)"]
)  # fmt: skip
_markdown = st.sampled_from(
    ["**", "*", "_", "__", "~~", "`", "``", "```", "```py\n", "# ", "###### ", "> ", "- ", "1. ", "---\n", "|",
     "|---|", "![", "](",
     ")", "<b>", "\\", "\\*", "<!--", "&amp;", "*" * 300, "[" * 300, "`" * 300, "> " * 100]
)  # fmt: skip
_words = st.sampled_from(
    ["Revenue rose 12 percent", "Zoë Müller", "the drug", "it", "he", "its", "they", "that one", "and", "why",
     "how many",
     "in 2025", "who", "What about", "?", ".", "!", "Mr.", "3.5", "the board", "Northwind's", "which ones", ", ",
     " ", "a"]
)  # fmt: skip
_text = st.lists(st.one_of(_odd, _marks, _markdown, _words, _words, st.text(max_size=5)), max_size=30).map("".join)
_exchanges = st.lists(st.lists(_text, min_size=3, max_size=3), max_size=3)
_SOURCES = (source(REPORT[:111]), source(REPORT[111:], number=2, start=111))


class TextTarget:
    """Any text, through each part of an answer."""

    name = "texts"
    cases: st.SearchStrategy[Case] = st.fixed_dictionaries(
        {
            "through": st.sampled_from(["footnotes", "plain text", "follow-up", "units"]),
            "text": _text,
            "cuts": st.lists(st.integers(0, 300), max_size=6),
            "before": _exchanges,
            "strict": st.booleans(),
        }
    )

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()

    def check(self, case: Case) -> None:
        """Take the text through the part that the case names."""
        started = time.process_time()
        text = case["text"]
        pieces = cut_up(text, case["cuts"])
        match case["through"]:
            case "footnotes":
                _check_footnotes(text, pieces, strict=case["strict"])
            case "plain text":
                _check_plain_text(text, pieces)
            case "follow-up":
                _check_follow_up(text, case["before"])
            case _:
                _check_units(text)
        assert time.process_time() - started < _LONGEST_S, "it took too long"


def _check_footnotes(text: str, pieces: list[str], *, strict: bool) -> None:
    whole, parts = (FootnoteWriter(_SOURCES, strict=strict, refusal=_REFUSAL) for _ in range(2))
    assert whole.feed(text) + whole.finish() == whole.answer, "the shown pieces are not the answer"
    assert "".join(map(parts.feed, pieces)) + parts.finish() == whole.answer, "the answer depends on the pieces"
    assert (parts.citations, parts.uncited) == (whole.citations, whole.uncited), "citations depend on the pieces"
    for citation in whole.citations:
        marker = whole.answer[citation.answer_start : citation.answer_end]
        assert marker == f"[{citation.index}]", f"a citation points at {marker!r}"
        assert citation.cited_text == REPORT[citation.start_char : citation.end_char] != "", "it cites other words"
    for span in whole.uncited:
        claim = whole.answer[span.start_char : span.end_char]
        assert claim.strip() == claim != "", f"an uncited claim is {claim!r}"


def _check_plain_text(text: str, pieces: list[str]) -> None:
    assert _plain(pieces) == _plain([text]) == _plain(list(text)), "the plain text depends on the pieces"
    letters = iter(text)
    assert all(char in letters for char in _plain([text]) if char.isalnum()), "a letter stood not in the text"
    if text.strip():
        assert len(excerpt_of(source(text))) <= MOST_CHARS, "an excerpt is too long"


def _plain(pieces: list[str]) -> str:
    writer = PlainText()
    return "".join(map(writer.feed, pieces)) + writer.finish()


def _check_follow_up(text: str, before: list[list[str]]) -> None:
    exchanges = [Exchange(question, answer, cited) for question, answer, cited in before]
    understood = stand_alone(text, exchanges)
    assert len(understood) <= max(600, len(text)), "the question became too long"
    assert bool(understood.strip()) == bool(text.strip()), "a question became blank, or a blank text a question"
    assert stand_alone(text, []) == text, "it was changed without a conversation"


def _check_units(text: str) -> None:
    spans = sentence_spans(text)
    end = 0
    for start, stop in spans:
        assert end <= start < stop <= len(text), f"the sentence ({start}, {stop}) comes after {end}"
        end = stop
    left = "".join(text[last:first] for (_, last), (first, _) in pairwise([(0, 0), *spans, (len(text), 0)]))
    assert not left.strip(), f"no sentence has {left.strip()[:40]!r}"
    for unit in units_of(text):
        for inner in (unit.core, *unit.pieces):
            assert 0 <= unit.span.start_char <= inner.start_char < inner.end_char <= unit.span.end_char, f"{unit}"
        assert unit.span.end_char <= len(text), f"{unit} ends behind the text"
