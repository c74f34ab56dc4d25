"""retrieval.span_model: windows hold the whole passage, and the best span is the one a plain search finds."""

from itertools import pairwise
from string import ascii_lowercase

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.span_model import (
    MOST_ANSWER_TOKENS,
    OVERLAP_TOKENS,
    QUESTION_TOKENS,
    WINDOW_TOKENS,
    SpanModel,
    Window,
    best_span,
    best_spans,
    most_evidence,
    windows_of,
)
from retrieval.types import Span
from tests.retrieval.reader_folder import SPECIAL, build_base, tokenizer

# Every character is a token, so that texts of many tokens are short.
LETTERS = [*ascii_lowercase, *"0123456789"]
VOCABULARY = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), *",.-"]
TOKENIZER = tokenizer(VOCABULARY)
TOKENIZER.no_truncation()
TOKENIZER.no_padding()
CLS, SEP = TOKENIZER.token_to_id("[CLS]"), TOKENIZER.token_to_id("[SEP]")

words = st.text(alphabet="abcXYZ019é,.-", min_size=1, max_size=9)
passages = st.lists(words, min_size=1, max_size=180).map(" ".join)
questions = st.lists(words, max_size=25).map(" ".join)


@settings(deadline=None, max_examples=25)
@given(question=questions, passage=passages)
def test_windows_hold_every_token_of_the_passage_and_overlap(question, passage):
    windows = windows_of(TOKENIZER, question, passage)
    whole = TOKENIZER.encode(passage, add_special_tokens=False)

    head = [CLS, *TOKENIZER.encode(question, add_special_tokens=False).ids[:QUESTION_TOKENS], SEP]
    together = list(windows[0].offsets)
    for before, after in pairwise(windows):
        assert after.offsets[:OVERLAP_TOKENS] == before.offsets[-OVERLAP_TOKENS:]
        together += after.offsets[OVERLAP_TOKENS:]
    assert together == whole.offsets
    for window in windows:
        assert len(window.ids) <= WINDOW_TOKENS
        assert list(window.ids[: window.first]) == head
        assert window.ids[-1] == SEP
        assert len(window.ids) == window.first + len(window.offsets) + 1


@settings(deadline=None, max_examples=25)
@given(question=questions, passage=passages)
def test_every_character_is_in_a_window_and_offsets_slice_to_their_token(question, passage):
    covered = set[int]()
    for window in windows_of(TOKENIZER, question, passage):
        for token, (start, end) in zip(window.ids[window.first : -1], window.offsets, strict=True):
            covered.update(range(start, end))
            spelt = TOKENIZER.id_to_token(token).removeprefix("##")
            assert passage[start:end].lower().replace("é", "e") == spelt

    assert covered == {place for place, character in enumerate(passage) if not character.isspace()}


@pytest.mark.parametrize("question", ["", "a " * 500])
def test_a_question_is_cut_and_may_be_empty(question):
    (window,) = windows_of(TOKENIZER, question, "abc")

    assert window.first == 2 + min(QUESTION_TOKENS, question.count("a"))
    assert window.offsets == ((0, 1), (1, 2), (2, 3))


@pytest.mark.parametrize("passage", ["", " \n\t "])
def test_a_passage_without_text_has_no_window(passage):
    assert windows_of(TOKENIZER, "a", passage) == []


def test_a_passage_that_just_fits_is_one_window_and_one_token_more_is_two():
    room = WINDOW_TOKENS - len(["[CLS]", "a", "[SEP]", "[SEP]"])

    assert len(windows_of(TOKENIZER, "a", "b " * room)) == 1
    first, second = windows_of(TOKENIZER, "a", "b " * (room + 1))
    assert len(first.ids) == WINDOW_TOKENS
    assert len(second.offsets) == OVERLAP_TOKENS + 1


# Whole numbers: their float32 sums are exact, so that the greatest is the same in any order of adding.
scores = st.integers(-2000, 2000)


@settings(deadline=None, max_examples=60)
@given(
    pairs=st.lists(st.tuples(scores, scores), min_size=2, max_size=50),
    closed=st.integers(0, 10),
)
def test_the_best_span_is_the_one_a_search_through_all_finds(pairs, closed):
    starts = torch.tensor([float(start) for start, _ in pairs])
    ends = torch.tensor([float(end) for _, end in pairs])
    last_closed = min(closed, len(pairs) - 2)  # the question, where no answer can be
    starts[1 : last_closed + 1] = ends[1 : last_closed + 1] = -1e4

    start, end, margin = best_span(starts, ends)

    spans = [
        (first, last)
        for first in range(1, len(pairs))
        for last in range(first, min(len(pairs), first + MOST_ANSWER_TOKENS))
    ]
    assert (start, end) in spans
    assert min(start, end) > last_closed
    greatest = max(float(starts[first] + ends[last]) for first, last in spans)
    assert float(starts[start] + ends[end]) == greatest
    assert margin == greatest - float(starts[0] + ends[0])


def test_a_span_is_no_longer_than_an_answer():
    starts, ends = torch.zeros(100), torch.zeros(100)
    starts[5], ends[5 + MOST_ANSWER_TOKENS] = 10, 10

    start, end, _ = best_span(starts, ends)

    assert end - start < MOST_ANSWER_TOKENS


def scored(window: Window, data: st.DataObject) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of the tokens of a window as the model gives them: very low outside the passage, place 0 excepted."""
    size, passage = len(window.ids), range(window.first, window.first + len(window.offsets))
    drawn = data.draw(st.lists(st.tuples(scores, scores), min_size=size, max_size=size))
    pairs = [pair if place == 0 or place in passage else (-10_000, -10_000) for place, pair in enumerate(drawn)]
    starts, ends = torch.tensor(pairs, dtype=torch.float32).T
    return starts, ends


few_words = st.lists(words, min_size=1, max_size=12).map(" ".join)


@settings(deadline=None, max_examples=60)
@given(passage=few_words, data=st.data())
def test_the_best_span_of_a_piece_that_is_the_whole_passage_is_the_best_of_all(passage, data):
    (window,) = windows_of(TOKENIZER, "who", passage)
    starts, ends = scored(window, data)

    assert best_spans(starts, ends, window, [Span(0, len(passage))]) == [best_span(starts, ends)]


@settings(deadline=None, max_examples=60)
@given(passage=few_words, data=st.data())
def test_the_best_span_of_a_piece_is_the_one_a_search_through_its_tokens_finds(passage, data):
    (window,) = windows_of(TOKENIZER, "who", passage)
    starts, ends = scored(window, data)
    bounds = st.tuples(st.integers(0, len(passage)), st.integers(0, len(passage))).map(sorted)
    pieces = [Span(*pair) for pair in data.draw(st.lists(bounds, max_size=5))]

    found = best_spans(starts, ends, window, pieces)

    assert len(found) == len(pieces)
    for piece, best in zip(pieces, found, strict=True):
        inside = [
            window.first + place
            for place, (start, end) in enumerate(window.offsets)
            if piece.start_char <= start and end <= piece.end_char
        ]
        spans = [(a, b) for a in inside for b in inside if a <= b < a + MOST_ANSWER_TOKENS]
        if best is None:
            assert not spans
            continue
        first, last, margin = best
        assert (first, last) in spans
        greatest = max(float(starts[a] + ends[b]) for a, b in spans)
        assert float(starts[first] + ends[last]) == greatest
        assert margin == greatest - float(starts[0] + ends[0])


def test_a_word_that_a_piece_cuts_is_not_in_it():
    (window,) = windows_of(TOKENIZER, "who", "a b c")
    starts = ends = torch.zeros(len(window.ids))

    assert best_spans(starts, ends, window, [Span(1, 2), Span(2, 2), Span(3, 4)]) == [None, None, None]
    assert best_spans(starts, ends, window, []) == []
    ((first, last, _),) = [best for best in best_spans(starts, ends, window, [Span(1, 4)]) if best]
    assert first == last == window.first + 1


def test_a_span_of_a_piece_is_no_longer_than_an_answer():
    passage = "a " * 100
    (window,) = windows_of(TOKENIZER, "who", passage)
    starts, ends = torch.zeros(len(window.ids)), torch.zeros(len(window.ids))
    starts[window.first + 5] = ends[window.first + 5 + MOST_ANSWER_TOKENS] = 10

    ((first, last, _),) = [best for best in best_spans(starts, ends, window, [Span(0, len(passage))]) if best]

    assert last - first < MOST_ANSWER_TOKENS


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return SpanModel.from_base(build_base(tmp_path_factory.mktemp("base"), vocabulary=VOCABULARY)).eval()


def test_answers_may_stand_in_the_passage_or_be_none(model):
    (window,) = windows_of(TOKENIZER, "who", "abc def")

    with torch.inference_mode():
        starts, ends = model([window])

    for found in (starts, ends):
        open_ = (found[0] > -1e3).nonzero().flatten().tolist()
        assert open_ == [0, *range(window.first, window.first + 6)]


def test_a_window_scores_alone_as_beside_a_longer_one(model):
    (short,), long, *_ = windows_of(TOKENIZER, "who", "abc"), *windows_of(TOKENIZER, "what", "abc def " * 60)

    with torch.inference_mode():
        alone, beside = model([short]), model([short, long])

    for one, both in zip(alone, beside, strict=True):
        assert torch.allclose(one[0], both[0, : len(short.ids)], atol=1e-4)
        assert bool((both[0, len(short.ids) :] <= -1e3).all())


@settings(deadline=None, max_examples=40)
@given(passage=passages, data=st.data())
def test_the_evidence_of_a_piece_is_its_surest_token(passage, data):
    window = windows_of(TOKENIZER, "a", passage)[0]
    tags = torch.tensor(data.draw(st.lists(scores, min_size=len(window.ids), max_size=len(window.ids)))).float()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(passage)), min_size=2, max_size=5)))
    pieces = [Span(start, end) for start, end in pairwise(cuts) if start < end]

    found = most_evidence(tags, window, pieces)

    for piece, most in zip(pieces, found, strict=True):
        inside = [
            float(tags[window.first + at])
            for at, (start, end) in enumerate(window.offsets)
            if piece.start_char <= start and end <= piece.end_char
        ]
        assert most == max(inside, default=None)


def test_only_a_model_with_tags_scores_evidence(tmp_path):
    base = build_base(tmp_path / "base", vocabulary=VOCABULARY)
    windows = windows_of(TOKENIZER, "a", "b c")

    for tags in (False, True):
        model = SpanModel.from_base(base, tags=tags)
        states, may = model.states(windows)
        scored = model.tagged(states, may)
        assert (scored is not None) == tags
        if scored is not None:
            assert scored.shape == (1, len(windows[0].ids))
            assert bool((scored[0, 1 : windows[0].first] < -1e3).all()), "the question is no evidence"
