"""The judging of plain questions on small responses, and the set of questions itself."""

from typing import Any

import pytest

from tests.bench.service.plain_questions.asking import Way
from tests.bench.service.plain_questions.figures import Judged, Share, figures, shares, table
from tests.bench.service.plain_questions.judging import judge
from tests.bench.service.plain_questions.questions import KINDS, Question, documents_of, load, select

_ASKED = Question(("pdf/memo.pdf",), "How many bottles?", "number", r"\b20,000\b")
_UNANSWERABLE = Question(("pdf/memo.pdf",), "Who sent the bottles?", "unanswerable", None)


def _body(*parts: tuple[str, str], above: str = "", quoted: bool = True, **fields: Any) -> dict[str, Any]:
    """A response that shows `above`, then each part's text with a marker that cites the part's file."""
    answer, spans, citations = above, [], []
    for number, (text, filename) in enumerate(parts, 1):
        start = len(answer)
        answer += f"{text} "
        marker = f"[{number}]"
        citations.append(
            {
                "answer_start": len(answer),
                "answer_end": len(answer) + len(marker),
                "filename": filename,
                "verified": True,
            }
        )
        answer += marker
        spans.append({"start": start, "end": len(answer)})
        answer += "\n"
    body = {"answered": True, "reason": None, "answer": answer, "citations": citations}
    return {**body, "quoted_spans": spans if quoted else [], **fields}


def test_the_first_quote_is_right_with_the_words_from_the_right_document() -> None:
    right, wrong = ("There were 20,000 bottles.", "memo.pdf"), ("There were 20,000 blankets.", "other.pdf")
    assert judge(_ASKED, _body(right, wrong)).first
    assert not judge(_ASKED, _body(("There were 120,000 bottles.", "memo.pdf"))).three
    behind = judge(_ASKED, _body(wrong, right))
    assert (behind.first, behind.three, behind.marked) == (False, True, True)
    assert not judge(_ASKED, _body(wrong, wrong, wrong, right)).three, "the fourth quote is not read"


def test_quotes_count_in_the_order_of_their_spans_not_of_the_text() -> None:
    body = _body(("Some blankets.", "memo.pdf"), ("20,000 bottles.", "memo.pdf"))
    assert not judge(_ASKED, body).first
    assert judge(_ASKED, {**body, "quoted_spans": body["quoted_spans"][::-1]}).first


def test_a_span_with_several_markers_is_several_quotes() -> None:
    body = _body(("Some blankets.", "memo.pdf"), ("20,000 bottles.", "memo.pdf"))
    verdict = judge(_ASKED, {**body, "quoted_spans": [{"start": 0, "end": len(body["answer"])}]})
    assert (verdict.first, verdict.three) == (False, True)


def test_a_marker_behind_its_span_belongs_to_it() -> None:
    body = _body(("20,000 bottles.", "memo.pdf"), ("Some blankets.", "other.pdf"))
    spans = [{"start": span["start"], "end": span["end"] - len(" [1]")} for span in body["quoted_spans"]]
    assert judge(_ASKED, {**body, "quoted_spans": spans}).first


def test_a_lead_is_judged_by_itself_and_with_the_first_quotes_file() -> None:
    quote = ("In all 20,000 bottles.", "memo.pdf")
    right = _body(quote, above="**20,000**\n\n", lead={"start": 2, "end": 8})
    assert judge(_ASKED, right).lead is True
    wrong = judge(_ASKED, _body(quote, above="10,000\n\n", lead={"start": 0, "end": 6}))
    assert (wrong.lead, wrong.first) == (False, True)
    assert judge(_ASKED, _body(quote)).lead is None
    foreign = _body(("In all 20,000 bottles.", "other.pdf"), above="20,000\n\n", lead={"start": 0, "end": 6})
    assert not judge(_ASKED, foreign).first


def test_text_above_the_quotes_is_a_lead() -> None:
    verdict = judge(_ASKED, _body(("Some blankets.", "memo.pdf"), above="It was 20,000 bottles.\n\n"))
    assert (verdict.lead, verdict.first) == (True, True)


def test_an_answer_without_quotes_is_judged_up_to_its_first_marker_and_as_a_whole() -> None:
    parts = ("Water came.", "memo.pdf"), ("It was 20,000 bottles.", "memo.pdf")
    verdict = judge(_ASKED, _body(*parts, quoted=False))
    assert (verdict.first, verdict.three) == (False, True)
    assert judge(_ASKED, _body(*reversed(parts), quoted=False)).first
    uncited: dict[str, Any] = {
        "answered": True,
        "reason": None,
        "answer": "20,000",
        "citations": [],
        "quoted_spans": [],
    }
    assert not judge(_ASKED, uncited).three, "nothing says where it is from"


def test_line_breaks_markdown_and_compatibility_characters_do_not_matter() -> None:
    asked = Question(("a.md",), "What?", "what", r"cost of \$5 fits the office")
    assert judge(asked, _body(("> The **cost** of\n> \\$5 \ufb01ts the o\ufb03ce.", "a.md"))).first


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [("unsure", "unsure"), ("no_evidence", "refused"), ("not_in_sources", "refused"), ("error", "failed")],
)
def test_what_is_not_answered_is_unsure_refused_or_failed(reason: str, outcome: str) -> None:
    verdict = judge(_ASKED, _body(("20,000 bottles.", "memo.pdf"), answered=False, reason=reason))
    assert verdict.outcome == outcome
    assert verdict.three == (outcome == "unsure"), "a refusal shows nothing that could be right"


def test_shares_count_what_the_names_say() -> None:
    right, wrong = ("20,000 bottles.", "memo.pdf"), ("Some blankets.", "memo.pdf")
    bodies = [
        (_ASKED, _body(right)),
        (_ASKED, _body(wrong, right)),
        (_ASKED, _body(wrong)),
        (_ASKED, _body(right, answered=False, reason="unsure")),
        (_ASKED, _body(wrong, answered=False, reason="no_evidence")),
        (_UNANSWERABLE, _body(wrong)),
        (_UNANSWERABLE, _body(wrong, answered=False, reason="not_in_sources")),
    ]
    judged = [Judged(question, judge(question, body), seconds=1.0) for question, body in bodies]
    found = {name: (share.hits, share.of) for name, share in shares(judged).items()}
    assert found["lead or first quote right"] == (1, 5)
    assert found["right within three quotes"] == (2, 5)
    assert found["marked confirmed and first wrong"] == (3, 5), "an unanswerable one is never right"
    assert found["marked confirmed, nothing right"] == (2, 5)
    assert found["answerable: refused"] == found["answerable: unsure"] == (1, 5)
    assert found["unsure, right words shown"] == (1, 1)
    assert found["unanswerable: answered"] == (1, 2)
    told = table({"default": figures(judged, processor_seconds=7.0)})
    assert "| lead or first quote right | 0.20 (1/5; 0.04 to 0.62) |" in told
    assert "| processor seconds | 1.00 |" in told
    assert "| number | 1, 2, 1, 5 |" in told
    assert "| unanswerable | 1, 1, 1, 2 |" in told


def test_the_interval_is_wilsons() -> None:
    """Against the values of Newcombe (1998), table I, method 3."""
    for hits, of, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)):
        share = Share.count([True] * hits + [False] * (of - hits))
        assert (share.low, share.high) == pytest.approx((low, high), abs=0.0006)
    assert str(Share.count([])) == "none"


def test_a_way_names_a_generator_and_settings() -> None:
    assert Way.of("default").settings == {}
    assert Way.of("extractive+dtype=float32").settings == {"generator": "extractive", "dtype": "float32"}
    with pytest.raises(ValueError, match="no value"):
        Way.of("default+strict")


def test_the_set_is_large_mixed_and_in_two_halves() -> None:
    questions = load()
    documents = documents_of(questions)
    names = {document.rpartition("/")[2] for document in documents}
    assert len(questions) == len({question.text for question in questions}) >= 150
    assert len(names) == len(documents) >= 40, "an uploaded file is known by its name"
    suffixes = {name.rpartition(".")[2] for name in names}
    assert suffixes >= {"pdf", "docx", "html", "xlsx", "csv", "eml", "md", "txt", "epub", "pptx", "rtf", "odt", "ods"}
    for half in ("building", "aside"):
        mine = select(questions, half=half)
        assert len(mine) >= 0.45 * len(questions)
        assert {question.kind for question in mine} == set(KINDS)
        assert sum(not question.answerable for question in mine) >= 12
    assert len(select(questions, half="all")) == len(questions)
    assert len(select(questions, half="building", limit=12)) == 12
    assert {one.kind for one in select(questions, half="all", kinds=["cell", "list"])} == {"cell", "list"}
    with pytest.raises(ValueError, match="unknown kinds: cells"):
        select(questions, half="all", kinds=["cells"])
