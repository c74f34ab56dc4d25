"""retrieval.sentences cuts where sentences end, and loses no character."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.sentences import sentence_spans, unit_spans
from retrieval.words import word_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize("text", ["", " ", "\n\n\t "])
def test_blank_text_has_no_sentences(text: str) -> None:
    assert sentence_spans(text) == []


@pytest.mark.parametrize(
    "parts",
    [
        ["Dr. Smith of Acme Inc. arrived on Jan. 5.", "He left, see Fig. 2 (p. 14).", "Why?"],
        ["It rose by 3.5 percent in the U.S. market.", "Nobody knew."],
        ["第一句。", "第二句！", "「第三句？」", "末尾"],
        ["これは文です。", "次の文です。"],
        ["هل هذا صحيح؟", "نعم هو كذلك"],
        ["यह पहला वाक्य है।", "यह दूसरा है॥", "अंत"],
        ["یہ پہلا جملہ ہے۔", "یہ دوسرا ہے۔"],
    ],
)
def test_sentences_of_many_scripts_are_told_apart(parts: list[str]) -> None:
    assert sentences(" ".join(parts)) == parts


def test_chinese_needs_no_space_between_sentences() -> None:
    assert sentences("第一句。第二句！第三句") == ["第一句。", "第二句！", "第三句"]


def test_a_blank_line_ends_a_sentence() -> None:
    assert sentences("A title without a stop\n \nThe text begins here and goes on.") == [
        "A title without a stop",
        "The text begins here and goes on.",
    ]


def test_a_blank_line_ends_even_what_looks_unfinished() -> None:
    parts = ["A paragraph that breaks off at the end of its page and", "goes on in small letters after a blank line"]

    assert sentences("\n\n".join(parts)) == parts


@pytest.mark.parametrize("bar", [" | ", "|", "\t| "])
def test_a_stop_at_the_end_of_a_cell_does_not_end_the_row(bar: str) -> None:
    row = bar.join(["Question: What is it?", "Answer: It is a feed.", "Asked: 3"])

    assert sentences(f"{row}\nThe table ends here.") == [row, "The table ends here."]


def test_a_bar_that_opens_a_line_is_no_end_of_a_cell() -> None:
    lines = ["It is written below.", "| Bolt | 3 EUR |"]

    assert sentences("\n".join(lines)) == lines


def test_a_line_break_inside_flowing_text_does_not() -> None:
    wrapped = (
        "The quarterly revenue of the company rose to a level\nthat nobody at Acme had expected when the year\nbegan."
    )

    assert sentences(wrapped) == [wrapped]


def test_wrapped_chinese_flows_on() -> None:
    wrapped = "这是一个非常长的句子它在这一行的末尾没有结束并且\n在下一行继续。"

    assert sentences(wrapped) == [wrapped]


@pytest.mark.parametrize(
    "lines",
    [
        ["Heading", "Some text below it."],
        ["- first item of the list, a long one indeed it is", "- second item"],
        ["What the contract says about the delivery of all goods", "1. nothing", "2. everything"],
        ["name: Ada | year: 1815 | profession: mathematician", "name: Alan | year: 1912 | profession: logician"],
        ["The following applies to everyone who works here:", "nothing is forbidden"],
    ],
)
def test_headings_list_items_and_table_rows_stand_alone(lines: list[str]) -> None:
    assert sentences("\n".join(lines)) == lines


@given(
    text=st.text(alphabet=st.sampled_from("aB1 .!?\n\r\t。؟।…\"'-|\u2028é👍🏽\u00a0\u200b"), max_size=80)
    | st.text(max_size=60)
)
def test_spans_are_ordered_disjoint_trimmed_and_lose_nothing(text: str) -> None:
    spans = sentence_spans(text)

    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
    covered = "".join(text[start:end] for start, end in spans)
    assert "".join(covered.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a b c d.", ["a b c d."]),
        ("a b c, d e f g h; i j k l m n o", ["a b c, d e f g h;", "i j k l m n o"]),
        ("one two three four five, six seven eight nine", ["one two three four five,", "six seven eight nine"]),
        ("一二三四五，六七八九十", ["一二三四五，", "六七八九十"]),
        ("ประเทศไทย", ["ประเทศไท", "ย"]),
    ],
)
def test_a_sentence_too_long_is_parted_at_its_last_mark_that_is_late_enough(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in unit_spans(text, most_words=8)] == parts


@given(
    text=st.text(alphabet=st.sampled_from("aB1 .!?\n\t。，;、ก字\u200b\u2028"), max_size=120) | st.text(max_size=60),
    most=st.integers(2, 12),
)
def test_units_are_sentences_of_at_most_so_many_words_that_lose_nothing(text: str, most: int) -> None:
    spans = unit_spans(text, most_words=most)

    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
    assert all(len(word_spans(text[start:end])) <= most for start, end in spans)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
    if all(len(word_spans(text[start:end])) <= most for start, end in sentence_spans(text)):
        assert spans == sentence_spans(text)


def test_long_lines_cost_linear_time() -> None:
    import time

    def seconds(text: str) -> float:
        started = time.process_time()
        sentence_spans(text)
        return time.process_time() - started

    seconds("Warm up. ")
    for unit in ("a line of words without any stop\n", "a!", "x ", "\n", "。"):
        small, large = (min(seconds(unit * (size // len(unit))) for _ in range(2)) for size in (20_000, 160_000))
        assert large < 24 * small + 0.05, unit  # quadratic would be 64 times
