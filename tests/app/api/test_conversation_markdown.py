"""A conversation as Markdown: each footnote has its document, its page and the exact words."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from app.answering.conversations.answer_record import AnswerRecord
from app.api.conversation_markdown import accepts_markdown, conversation_markdown
from app.db.cited_passages import PassagePlace
from app.types import Conversation, KeptTurn
from ingestion.revisions import PassageState
from tests.app.answering.conversations.test_answer_record import earlier, record_of, turn_of
from tests.app.answering.groundings import SENTENCE, SURE
from tests.app.answering.quoting.test_strategy import quoted

CONVERSATION = Conversation(
    id="conv_1",
    tenant_id="t1",
    user_id="ann",
    key_id=None,
    title="The *annual* report",
    metadata={},
    created_at=0.0,
    updated_at=0.0,
    turns=2,
)


def citation(answer: str, index: int, words: str, **fields: object) -> dict[str, object]:
    start = answer.index(f"[{index}]")
    return {
        "index": index,
        "answer_start": start,
        "answer_end": start + len(f"[{index}]"),
        "document_id": "doc_1",
        "version": 2,
        "filename": "report_2024.pdf",
        "page_start": 4,
        "page_end": 4,
        "start_char": 10,
        "end_char": 30,
        "cited_text": words,
        "verified": True,
        **fields,
    }


def turn(number: int, question: str, answer: str, *citations: dict[str, object]) -> KeptTurn:
    return KeptTurn(
        request_id=f"req_{number}",
        question=question,
        standalone=None,
        answer=answer,
        answered=True,
        citations=citations,
        ordinal=number,
        created_at=0.0,
    )


def test_footnotes_are_numbered_through_the_conversation_and_quoted_in_the_appendix() -> None:
    first, second = "It rose 12 % [3] and fell [1].", "Ada said so [1]."
    text = conversation_markdown(
        CONVERSATION,
        [
            turn(
                1, "How did\nit develop?", first, citation(first, 1, "It fell."), citation(first, 3, "It *rose*\n12 %.")
            ),
            turn(2, "Who said so?", second, citation(second, 1, "- Ada", page_end=5, verified=False)),
        ],
        {},
    )

    assert text == (
        "# The \\*annual\\* report\n\n1970-01-01, ann\n\n"
        "## How did it develop?\n\nIt rose 12 % [^1] and fell [^2].\n\n"
        "## Who said so?\n\nAda said so [^3].\n\n"
        "## Passages\n\n"
        "[^1]: **report\\_2024.pdf**, page 4, version 2, characters 10–30:\n\n    > It \\*rose\\*\n    > 12 %.\n\n"
        "[^2]: **report\\_2024.pdf**, page 4, version 2, characters 10–30:\n\n    > It fell.\n\n"
        "[^3]: **report\\_2024.pdf**, pages 4–5, version 2, characters 10–30, not confirmed:\n\n    > \\- Ada\n"
    )


@pytest.mark.parametrize("stored", [AnswerRecord.as_json, earlier], ids=["today", "previous version"])
def test_what_is_quoted_is_confirmed_by_its_passage_and_what_leads_is_not(
    stored: Callable[[AnswerRecord], Mapping[str, object]],
) -> None:
    ended = quoted(SURE, "answered")
    doubted = [replace(one, verified=False) for one in ended.citations]
    kept = turn_of(stored(record_of(ended)), ended.text, doubted)
    text = conversation_markdown(CONVERSATION, [kept], {})

    assert f"**4 May** [^1]\n\n> {SENTENCE} [^2]" in text
    assert [line.endswith("not confirmed:") for line in text.split("\n") if line.startswith("[^")] == [True, False]


def test_a_format_without_pages_and_a_title_that_is_not_there() -> None:
    answer = "Yes [1]."
    told = turn(1, "Q?", answer, citation(answer, 1, "Yes.", page_start=None, page_end=None))
    text = conversation_markdown(replace(CONVERSATION, title=None), [told], {})

    assert text.startswith("# Conversation\n")
    assert "[^1]: **report\\_2024.pdf**, version 2, characters 10–30:\n\n    > Yes.\n" in text


def test_what_is_taken_along_loads_nothing() -> None:
    hostile = "![x](https://evil.example/p.png) <img src=x> <!-- [1]"
    text = conversation_markdown(
        CONVERSATION, [turn(1, "<script>![q](u)", hostile, citation(hostile, 1, "<b>![w](u)\n# Heading"))], {}
    )

    assert "![" not in text.replace("\\!\\[", "").replace("!\\[", "")
    assert "<img" not in text.replace("\\<img", "")
    assert "<script" not in text.replace("\\<script", "")
    assert "> \\# Heading" in text


def test_citations_without_a_place_in_the_answer_are_left_out() -> None:
    answer = "Yes [1]."
    beyond = citation(answer, 1, "No.", answer_start=90, answer_end=93)
    text = conversation_markdown(CONVERSATION, [turn(1, "Q?", answer, beyond, {"index": 2, "cited_text": "old"})], {})

    assert "Yes [1]." in text
    assert "Passages" not in text


@pytest.mark.parametrize(
    ("accept", "allowed"),
    [
        ("", True),
        ("*/*", True),
        ("text/html,application/xhtml+xml,*/*;q=0.8", True),
        ("text/markdown", True),
        ("TEXT/Markdown; charset=utf-8", True),
        ("application/pdf", False),
        ("application/json", False),
    ],
)
def test_which_accept_headers_allow_markdown(accept: str, allowed: bool) -> None:
    assert accepts_markdown(accept) is allowed


def exported(found: PassagePlace, words: str = "It *rose* 12 %.") -> str:
    """The appendix of a conversation that cites a passage of which this is known."""
    answer = "It rose [1]."
    kept = turn(1, "Q?", answer, citation(answer, 1, words))
    return conversation_markdown(CONVERSATION, [kept], {("doc_1", 2, 10, 30): found}).partition("## Passages\n\n")[2]


def test_a_passage_that_moved_says_where_it_is_now() -> None:
    moved = PassagePlace(version=3, state=PassageState.MOVED, start_char=5, end_char=25, page_start=6, page_end=7)
    assert exported(moved).startswith(
        "[^1]: **report\\_2024.pdf**, page 4, version 2, characters 10–30, unchanged in version 3, pages 6–7:\n\n"
    )


def test_an_altered_passage_is_not_confirmed_and_has_both_wordings_with_the_words_that_differ() -> None:
    altered = PassagePlace(
        version=3,
        state=PassageState.ALTERED,
        start_char=5,
        end_char=25,
        page_start=4,
        page_end=4,
        text="It *fell* 13 %.",
    )
    assert exported(altered) == (
        "[^1]: **report\\_2024.pdf**, page 4, version 2, characters 10–30, altered since, not confirmed:\n\n"
        "    > It \\*~~rose~~\\* ~~12~~ %.\n\n"
        "    Now, in version 3, page 4:\n\n"
        "    > It \\***fell**\\* **13** %.\n"
    )


def test_a_passage_that_is_gone_or_not_looked_for_yet_is_not_confirmed() -> None:
    gone = exported(PassagePlace(version=3, state=PassageState.GONE))
    undecided = exported(PassagePlace(version=3, state=None))
    assert "characters 10–30, no longer in the document, not confirmed:" in gone
    assert "characters 10–30, version 3 not compared yet, not confirmed:" in undecided


def test_a_passage_that_is_where_it_was_says_nothing_more() -> None:
    current = PassagePlace(version=2, state=PassageState.CURRENT, start_char=10, end_char=30)
    assert "characters 10–30:\n" in exported(current)
