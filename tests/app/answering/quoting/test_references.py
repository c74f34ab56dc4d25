"""app.answering.quoting.references tells entries of lists of references and bare citations from prose."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answering.quoting.references import is_citation, reference_entries, refers_only
from retrieval.types import Span

ENTRIES = (
    "33. Vale, Mira. Lamps of the North. Journal of Harbours 12 (2004): 1-9.",
    "Vale, M. and Orr, T. (1999). On lamps. Harbour Letters, 5(2), pp. 12-15.",
    "[35] M. Vale, “Lamps,” Proc. Harbours, vol. 3, pp. 1–2, 2001.",
    "Harbour Board (2004). The yearly report. Retrieved from https://harbour.example/report",
    "Vale, M., Orr, T. L., & Poe, A. (2011). A study of long\nlines that wrap. Harbours, 3, 4-5. doi:10.1/x",
    "Vale MR, Orr T. Lamps of the north. Harbours. 2012;4(2):11-19.",
    '43. "Lamps go out" (https://harbour.example/news/43).',
    '43. "Lamps go out" (https://harbour.example/ne\nws/43). Harbour News. 29 April 2004. Retrieved 1 May 2005.',
    '44. Vale, Mira (26 October 2017). "Lamps" (h\nttps://harbour.example/44). Harbour News.',
)


@pytest.mark.parametrize(
    "text",
    [
        "28 U.S.C. § 589b",
        "See 28 C.F.R. § 58.3(b); id. at 4.",
        "See Vale v. Orr, 410 U.S. 113 (1973).",
        "12 F.3d 45 (9th Cir. 1999)",
        "Ibid., p. 4",
        "Vale, supra note 4, at 12.",
        "32. Vale 2004, p. 126",
        "[11]",
        "[3, 11]",
        "(Vale et al., 2004)",
        "pp. 4-9",
        "§ 5",
        "doi:10.1000/182",
    ],
)
def test_a_sentence_of_citations_alone_is_a_citation(text: str) -> None:
    assert is_citation(text)


@pytest.mark.parametrize(
    "text",
    [
        "The fee is set by 28 U.S.C. § 589b.",
        "Statute: 28 U.S.C. § 589b",
        "In Vale v. Orr the court dismissed the appeal.",
        "5 Jan. 2004",
        "(May, 2004)",
        "3 EUR",
        "4 May",
        "12 Main St. 4",
        "12 a.m.",
        "",
    ],
)
def test_what_says_more_is_no_citation(text: str) -> None:
    assert not is_citation(text)


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_is_found_whole_between_prose(entry: str) -> None:
    text = f"Lamps burn oil.\n\n{entry}\n\nThey were lit at dusk."
    (found,) = reference_entries(text)

    assert text[found.start_char : found.end_char] == entry


def test_entries_on_lines_below_each_other_are_all_found() -> None:
    text = "\n".join(ENTRIES)

    assert refers_only(text, Span(0, len(text)))
    assert len(reference_entries(text)) == len(ENTRIES)


def test_entries_that_run_on_in_one_line_are_all_found() -> None:
    text = f"{ENTRIES[0]} 34. Orr, Tom. Oil. Harbours 3 (2005): 4-6."

    assert [text[one.start_char : one.end_char] for one in reference_entries(text)] == [
        ENTRIES[0],
        "34. Orr, Tom. Oil. Harbours 3 (2005): 4-6.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Vale, Mira was born in 1950 and wrote for Harbour Press.",
        "Bergen, Norway, is a port. It grew in 1999 (p. 4).",
        "1. Mix the oil in 1999 with no. 5 salt.",
        "Vale, Zoë became chief in 2024, vol. 3.",
        "Ada B. Orr is a series of books of 1992 by Harbour Press.",
        "Revenue, Cost and Profit in 2020 were 4 (2019: 3).",
        "The plant closed in 2004 (see p. 4).",
        "| Vale, M. | 2004 | Harbour Press |",
    ],
)
def test_prose_with_names_and_years_is_no_entry(text: str) -> None:
    assert reference_entries(text) == ()


def test_the_announcement_of_entries_refers_only_and_a_sentence_before_them_does_not() -> None:
    listed = f"References\n\n{ENTRIES[0]}"
    told = f"The lamps burn whale oil.\n\n{ENTRIES[0]}"

    assert refers_only(listed, Span(0, len(listed)))
    assert not refers_only(told, Span(0, len(told)))
    assert not refers_only(told, Span(0, 25))


@given(
    st.lists(
        st.sampled_from(["Vale", "V.", ", ", "(2004)", "[1] ", "p. 4", " ", "\n", "1. ", "§ ", "Id.", "and"]),
        max_size=60,
    )
)
def test_entries_are_apart_in_reading_order_and_inside_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    found = reference_entries(text)
    is_citation(text)

    assert all(0 <= one.start_char < one.end_char <= len(text) for one in found)
    assert all(one.end_char <= other.start_char for one, other in pairwise(found))


def test_what_could_be_cut_into_citations_in_many_ways_takes_no_longer() -> None:
    assert not is_citation("p.1" * 200 + "!")


@pytest.mark.parametrize(
    "unit",
    ["A", "A ", "Aa ", "p.1", "Aa, Bb, ", "A. Aa & ", "Aa BB, ", "A.-A. Aa, ", "Aa v. ", "Id., at 1, ", "1 A.B. 1, "],
)
@pytest.mark.parametrize("ending", ["", "!", " (2004)"])
@pytest.mark.timeout(20)  # these take well below a second together; a pattern that tries every cut takes hours
def test_text_that_can_be_cut_in_many_ways_takes_no_time(unit: str, ending: str) -> None:
    text = f"1 {(unit * 700)[:650]}{ending}"

    refers_only(text, Span(0, len(text)))

    assert not is_citation(f"{text} x")
