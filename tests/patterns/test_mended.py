"""Patterns that take linear time now match what the quadratic or exponential ones before them matched."""

import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patterns.sources import ROOT, Pattern, uses

NAME = r"[A-ZÀ-ÞŁŚŻ][\w-]+(?: [A-ZÀ-ÞŁŚŻ][\w-]+)*"
ENDS = r"(?= (?:is|are|was|were|did|has|have|had|rose|fell|in|of|by|to)\b|[.,?!]|$)"
ITEM = r"(?:[-*•‣▪◦–+]|\(?(?:\d{1,3}|[A-Za-z])[.)])"
BREAKS = r"[\r\n\v\f\x85\u2028\u2029]"
BLANK = " ¦  ¦\t¦\n¦\r\n¦\u2028¦\xa0¦\x0b"


@dataclass(frozen=True)
class Mended:
    """A pattern by its module and a part of its text, the one before it, and pieces of texts to try (`¦` between)."""

    path: str
    part: str
    before: str
    pieces: str
    method: str = "finditer"
    flags: int = 0

    def now(self) -> Pattern:
        found = {use.pattern for use in uses(ROOT / self.path) if self.part in str(use.pattern.pattern)}
        assert len(found) == 1, found
        return found.pop()


ALL = [
    Mended(
        "app/answering/understanding/followup/antecedents.py",
        r"['’]s [a-z-]+",
        rf"\b{NAME}['’]s [a-z-]+{ENDS}",
        "Ab¦Ł-¦'s¦plan¦ ¦x¦.",
    ),
    Mended(
        "app/answering/understanding/followup/antecedents.py",
        "what(?:'s",
        r"\W*what(?:'s|\s+is|\s+was)\s+the\s+[a-z ]+\b",
        "What¦'s¦ is¦ the¦ cat¦ 1¦ _¦cat¦?",
        "match",
        re.I,
    ),
    Mended(
        "app/answering/understanding/followup/continuation.py",
        r"\.(?:pdf",
        r"[\w-]+\.(?:pdf|docx?|xlsx?|pptx?|html?|md|txt|csv|eml|epub)\b",
        "a¦-¦.pdf ¦.txt/¦.x¦ ¦.¦/",  # two names joined by a hyphen are one
        flags=re.I,
    ),
    Mended("app/answering/retrieving/outline.py", r"[-*•‣▪◦–+])\Z", rf"\s+{ITEM}\Z", f"{BLANK}¦1.¦(a)¦-¦x"),
    Mended(
        "app/answering/formats/plain_text.py",
        "={2,}",
        r"\s*(?:([-*_])(?:[ \t]*\1){2,}|={2,}|--|\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)+)\s*",
        "-¦--¦*¦_¦=¦:¦|¦x¦ ¦\t¦\n",
        "fullmatch",
    ),
    Mended("app/answering/prompt.py", r"(?=\n)", r"[ \t]+(?=\n)", "a¦ ¦\t¦\n"),
    Mended("app/answering/quoting/rendering.py", BREAKS, rf"[ \t]*{BREAKS}\s*", f"a¦{BLANK}"),
    Mended(
        "app/answering/quoting/rendering.py",
        "(?<=[:|])",
        rf"(?<=[:|])\s*\n\s*|\s*\n\s*(?=\||{ITEM}\s)|\s*\n\s*(?=[^\n|]*\|)",
        f"a¦:¦-¦1.¦x|¦{BLANK}",
    ),
    Mended(
        "app/answering/quoting/columns.py",
        "-+",
        r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*",
        "-¦--¦:¦|¦ ¦x¦\t",
        "fullmatch",
    ),
    Mended("ingestion/builder.py", r"\w\S*", r"\S*\w\S*", "a¦b!¦!¦.¦ ¦\n"),
    Mended("ingestion/readers/pdf_paragraphs.py", r"-\w+", r"\w+-\w+", "a¦-¦b1¦ ¦."),
    Mended("ingestion/readers/pdf_paragraphs.py", r"\w++$", r"\w+$", "a¦-¦b1¦ ¦.¦\n"),
    Mended("ingestion/titles.py", r".*[/\\]", r".*[/\\]", "a¦/¦\\¦\n", flags=re.DOTALL),
    Mended("retrieval/sentences.py", r"(?:\r\n|", rf"[ \t]*(?:\r\n|{BREAKS})\s*", f"a¦{BLANK}"),
    Mended(
        "retrieval/footnote_numbers.py", r"(?<!\s)", r"\s*\[\s*(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\s*\]", "a¦[¦1¦,¦;¦]¦ ¦\n"
    ),
    Mended(
        "retrieval/units.py", r"\t+", r"\s*\|\s*|\t+|[ \u00a0]{3,}|(?<=[^\W\d_]:)\s+|(?<=\):)\s+", f"a¦:¦):¦x|¦{BLANK}"
    ),
]


def found(pattern: Pattern, method: str, text: str) -> object:
    if method == "finditer":
        return [(match.span(), match.groups()) for match in pattern.finditer(text)]  # type: ignore[call-overload]
    return getattr(pattern, method)(text) is not None


@pytest.mark.parametrize("mended", ALL, ids=lambda mended: f"{mended.path}-{mended.part}")
def test_it_matches_what_the_pattern_before_it_matched(mended: Mended) -> None:
    before, now = re.compile(mended.before, mended.flags), mended.now()
    pieces = mended.pieces.split("¦")

    @given(st.lists(st.sampled_from(pieces), max_size=12).map("".join))
    def same(text: str) -> None:
        assert found(now, mended.method, text) == found(before, mended.method, text)

    same()
