"""retrieval.span_reader marks the best words of each piece of a passage, never outside it."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.span_model import MOST_ANSWER_TOKENS, WINDOW_TOKENS, windows_of
from retrieval.span_reader import EncoderSpanReader
from retrieval.types import Span
from tests.retrieval.reader_folder import trained
from tests.retrieval.test_span_reader import FLAT, PASSAGES, QUESTION, base, batched, finder, folder, reader, texts

__all__ = ["base", "finder", "folder", "reader"]

pytestmark = pytest.mark.usefixtures("one_thread")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=texts, passages=st.lists(texts, max_size=4), data=st.data())
def test_what_is_marked_is_never_outside_its_piece(
    reader: EncoderSpanReader, question: str, passages: list[str], data: st.DataObject
) -> None:
    pieces = [
        data.draw(
            st.lists(
                st.tuples(st.integers(0, len(passage)), st.integers(0, len(passage))).map(
                    lambda pair: Span(min(pair), max(pair))
                ),
                max_size=4,
            )
        )
        for passage in passages
    ]

    marked = reader.mark(question, passages, pieces)

    assert [len(found) for found in marked] == [len(of_passage) for of_passage in pieces]
    best = reader.read(question, passages)
    for passage, of_passage, found, whole in zip(passages, pieces, marked, best, strict=True):
        for piece, pointer in zip(of_passage, found, strict=True):
            if pointer is not None:
                assert piece.start_char <= pointer.start < pointer.end <= piece.end_char
                assert passage[pointer.start : pointer.end].strip()
                assert whole is not None
                assert pointer.margin <= whole.margin + 1e-3, "the best of the passage is the best of all its pieces"
            elif piece.end_char - piece.start_char == len(passage):
                assert whole is None


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(passages=st.lists(texts, max_size=4))
def test_a_piece_that_is_the_whole_passage_is_marked_as_the_passage_is_read(
    reader: EncoderSpanReader, passages: list[str]
) -> None:
    marked = reader.mark(QUESTION, passages, [[Span(0, len(passage))] for passage in passages])

    assert [found for (found,) in marked] == reader.read(QUESTION, passages)


def test_margins_are_what_probabilities_are_made_of(reader: EncoderSpanReader) -> None:
    found = [one for one in reader.read(QUESTION, PASSAGES) if one]

    assert [one.probability for one in found] == [FLAT.probability(one.margin) for one in found]


def test_what_is_marked_is_that_of_the_slow_reference(base: Path) -> None:
    """Each window alone through the model, every span within the piece compared, the best of all windows taken."""
    import torch
    from tokenizers import Tokenizer

    model = trained(base)
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    pieces = [[Span(at, min(at + 40, len(one))) for at in range(0, max(1, len(one)), 25)] for one in PASSAGES]
    expected = []
    for passage, of_passage in zip(PASSAGES, pieces, strict=True):
        scored = []
        for window in windows_of(tokenizer, QUESTION, passage):
            with torch.inference_mode():
                starts, ends = (scores[0].tolist() for scores in model([window]))
            for i, (start, _) in enumerate(window.offsets, start=window.first):
                for j, (_, end) in enumerate(window.offsets[i - window.first :][:MOST_ANSWER_TOKENS], start=i):
                    scored.append((starts[i] + ends[j] - starts[0] - ends[0], start, end))
        for piece in of_passage:
            inside = [one for one in scored if piece.start_char <= one[1] and one[2] <= piece.end_char]
            expected.append(max(inside, default=None))

    for batch_tokens in (1, 100, 4096):
        marked = batched(model, base, batch_tokens=batch_tokens).mark(QUESTION, PASSAGES, pieces)
        found = [pointer for of_passage in marked for pointer in of_passage]
        assert [one and (one.start, one.end) for one in found] == [one and one[1:] for one in expected]
        assert [one.margin for one in found if one] == pytest.approx([one[0] for one in expected if one], abs=1e-3)


def test_an_answer_in_another_piece_is_not_pointed_at(finder: EncoderSpanReader) -> None:
    passage = "the dogs fell . " + "cats " * WINDOW_TOKENS + "spring of the winter"
    pieces = [Span(0, 13), Span(passage.index("spring"), len(passage))]

    ((other, answer),) = finder.mark(QUESTION, [passage], [pieces])

    assert other is not None
    assert answer is not None
    assert other.end <= 13
    assert passage[answer.start : answer.end] == "spring of the winter"
    assert other.margin < 0 < answer.margin


def test_no_pieces_are_marked_with_nothing(reader: EncoderSpanReader) -> None:
    assert reader.mark(QUESTION, [], []) == []
    assert reader.mark(QUESTION, ["cats", ""], [[], []]) == [[], []]
    assert reader.mark(QUESTION, ["cats"], [[Span(1, 3), Span(2, 2)]]) == [[None, None]]
