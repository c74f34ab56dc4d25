"""app.tuning.span_reader.pairs: answers are where they are said to be, and nothing else answers."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.evaluation.squad import contains_any
from app.evaluation.types import GoldSpan, QuestionSet, SetDocument, SetQuestion
from app.tuning.adapter.examples import Example, Statement
from app.tuning.adapter.packs import Corpus
from app.tuning.span_reader.pairs import batches, pairs_of
from app.tuning.span_reader.training import Pair, Target
from retrieval.sentences import sentence_spans
from retrieval.span_model import Window
from tests.app.tuning.drawers import corpus_of, drawers

SEEDS = range(4)
LONGEST = 1100


def made(corpus: Corpus, seed: int) -> list[Pair]:
    return pairs_of(corpus, random_=random.Random(seed))


@pytest.fixture(scope="module", params=[0, 18], ids=["short", "long"])
def corpus(request):
    return corpus_of(drawers(20, filler=request.param))


def golds(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    return {question.text: question.answers for question in corpus.question_set.questions.values()}


@pytest.mark.parametrize("seed", SEEDS)
def test_an_answer_is_where_its_pair_says(corpus, seed):
    asked = set()
    for pair in made(corpus, seed):
        if pair.answer is not None:
            start, end = pair.answer
            assert pair.passage[start:end] in golds(corpus)[pair.question]
            asked.add(pair.question)

    assert asked == set(golds(corpus))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_unanswered_holds_no_gold_answer_to_its_question(corpus, seed):
    unanswered = [pair for pair in made(corpus, seed) if pair.answer is None]
    known = golds(corpus)

    asked = [pair for pair in unanswered if pair.question in known]
    changed = [pair for pair in unanswered if pair.question not in known]
    assert asked
    assert changed
    for pair in asked:
        assert not contains_any(pair.passage, known[pair.question])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_passage_is_whole_or_cut_at_sentences_and_half_begin_with_their_title(corpus, seed):
    texts = {document.text for document in corpus.question_set.documents.values()}
    titled = 0
    pairs = made(corpus, seed)
    for pair in pairs:
        title, _, body = pair.passage.rpartition("\n")
        titled += title.startswith("Cabinet ")
        (whole,) = (text for text in texts if body in text)
        at = whole.index(body)
        if len(whole) <= LONGEST:
            assert body == whole
            continue
        assert len(body) <= LONGEST
        sentences = sentence_spans(whole)
        assert at in {start for start, _ in sentences}
        assert at + len(body) in {end for _, end in sentences}

    assert 0.25 < titled / len(pairs) < 0.75


def test_where_a_long_passage_is_cut_is_left_to_chance():
    corpus = corpus_of(drawers(4, filler=30))

    answers = {pair.answer[0] for seed in range(10) for pair in made(corpus, seed) if pair.answer}

    assert len(answers) > 5


def said(text: str, answer: str, *, evidence: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """Where the answers of the pairs about one passage are."""
    question_set = QuestionSet(
        name="one",
        documents={"p": SetDocument("p", "", text), "other": SetDocument("other", "", "Nothing is told here.")},
        questions={"q": SetQuestion("q", "what  is it", (answer,))},
        judgments={"q": {"p": 1}},
        spans={"q": tuple(GoldSpan("p", at, at + len(answer), answer) for at in evidence)},
        fingerprint="",
    )
    example = Example("what is it", (Statement(answer, "p"),), ("p",), (answer,))
    return [pair.answer for pair in made(Corpus(question_set, [example]), 1) if pair.answer]


def test_an_answer_said_twice_is_pointed_at_where_its_evidence_is():
    text = "Oslo is old. The capital is Oslo."

    assert said(text, "Oslo") == [(0, 4)]
    assert said(text, "Oslo", evidence=(text.rindex("Oslo"),)) == [(28, 32)]


def test_evidence_that_is_not_the_answer_is_passed_over():
    assert said("Oslo is old.", "Oslo", evidence=(5,)) == [(0, 4)]


def test_an_answer_is_sought_as_whole_words_first():
    assert said("It was 1900 when 90 came.", "90") == [(17, 19)]
    assert said("It was the 1990s.", "1990") == [(11, 15)]
    assert said("It cost US$90 then.", "$90") == [(10, 13)]


@pytest.mark.parametrize("answer", ["no", "Yes", ""])
def test_a_yes_or_no_answer_has_no_span_in_the_passage(answer):
    assert said("I know of no eyes. Yes.", answer) == []


def test_an_example_without_statements_or_whose_words_are_not_there_is_left_out():
    corpus = corpus_of(drawers(4))
    silent = [
        replace(corpus.examples[0], statements=()),
        replace(corpus.examples[1], statements=(Statement("x y", "p1"),)),
    ]

    assert made(Corpus(corpus.question_set, silent), 1) == []


def test_pairs_of_one_seed_are_always_the_same(corpus):
    assert made(corpus, 5) == made(corpus, 5)
    assert made(corpus, 5) != made(corpus, 6)


@settings(deadline=None, max_examples=50)
@given(lengths=st.lists(st.integers(1, 50), max_size=300), size=st.integers(1, 5), seed=st.integers(0, 9))
def test_batches_ask_everything_once_but_for_less_than_one_batch(lengths, size, seed):
    targets = [Target(Window(tuple(range(length)), 0, ((place, place),)), 0, 0) for place, length in enumerate(lengths)]

    found = batches(targets, size=size, random_=random.Random(seed))

    assert all(len(batch) == size for batch in found)
    asked = [target.window.offsets for batch in found for target in batch]
    assert len(asked) == len(set(asked)) == len(targets) // size * size


def test_a_batch_holds_windows_of_like_length():
    targets = [Target(Window(tuple(range(length % 60)), 0, ()), 0, 0) for length in range(1, 1201)]

    found = batches(targets, size=4, random_=random.Random(1))

    padded = sum(4 * max(len(one.window.ids) for one in batch) for batch in found)
    assert padded < 1.1 * sum(len(target.window.ids) for target in targets)
