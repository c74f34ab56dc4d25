"""app.tuning: examples say what their passages say, and packs ask them in the application's own prompts."""

import itertools
import random

import pytest

from app.answering.generating.prompt_layout import build_prompt
from app.answering.languages.table import REFUSAL
from app.evaluation.types import GoldSpan, QuestionSet, SetDocument, SetQuestion
from app.tuning.adapter.examples import (
    Example,
    Statement,
    claims,
    descriptions,
    findings,
    perturbed,
    spans,
    twofold,
    typical,
)
from app.tuning.adapter.packs import Corpus, Mixture, Packer, render
from retrieval.types import Context
from tests.app.answering.test_prompt import CharacterTokenizer

TEXTS = {
    "a": ("Oslo", "Oslo is the capital of Norway. The city hall of Oslo was opened in 1950 by Arnstein Arneberg."),
    "b": ("Oslo", "Ferries leave the harbour every hour. The largest ferry carries 900 people to Nesodden."),
    "c": ("Bergen", "Bergen lies between seven mountains. Edvard Grieg was born in Bergen in 1843."),
    "d": ("Ships", "A frigate has three masts. The first frigate was built before the galleon."),
}
ASKED = {
    "q1": ("When was the city hall of Oslo opened?", ("1950", "in 1950"), "a"),
    "q2": ("How many people does the largest ferry carry?", ("900 people", "900"), "b"),
    "q3": ("Who was born in Bergen in 1843?", ("Edvard Grieg",), "c"),
    "q4": ("What has three masts?", ("A frigate",), "d"),
}


class EndingTokenizer(CharacterTokenizer):
    eos_ids = frozenset({0})


def question_set(**metadata: str) -> QuestionSet:
    return QuestionSet(
        name="towns",
        documents={key: SetDocument(key, title, text) for key, (title, text) in TEXTS.items()},
        questions={
            key: SetQuestion(key, text, answers, metadata=metadata) for key, (text, answers, _) in ASKED.items()
        },
        judgments={key: {passage: 1} for key, (_, _, passage) in ASKED.items()},
        spans={"q1": (GoldSpan("a", 30, 95, TEXTS["a"][1][30:]),)},
        fingerprint="",
    )


def test_a_short_answer_stands_in_its_passage():
    found = {example.question: example for example in spans(question_set())}

    assert len(found) == len(ASKED)
    for example in found.values():
        (statement,) = example.statements
        assert statement.text in TEXTS[statement.passage][1]


def test_the_typical_answer_is_the_one_most_like_the_others():
    assert typical(("in the year 1950", "1950", "in 1950")) == "in 1950"


def test_a_claim_is_answered_by_its_sentence():
    (found,) = claims(question_set(label="CONTRADICT"))

    assert found.statements[0].text.startswith("No: The city hall of Oslo")
    assert found.question.startswith("Is it true that When was")


def test_a_finding_is_told_sentence_by_sentence():
    found = findings(question_set(long_answer="Ferries help. They are slow. Nobody minds."))

    assert [statement.text for statement in found[0].statements] == ["Ferries help", "They are slow"]


def test_a_description_quotes_the_sentences_that_name_it():
    found = descriptions(question_set(), random_=random.Random(1), share=1.0)

    for example in found:
        for statement in example.statements:
            assert statement.text in TEXTS[statement.passage][1]


def test_a_perturbed_question_asks_for_what_its_passage_does_not_hold():
    for seed in range(20):
        for key, (question, answers, passage) in ASKED.items():
            example = Example(question, (Statement(answers[0], passage),), (passage,), answers)
            others = [text for name, (_, text) in TEXTS.items() if name != passage]
            changed = perturbed(example, TEXTS[passage][1], random_=random.Random(seed), others=others)
            if changed is not None:
                assert (changed.statements, changed.needs) == ((), (passage,)), key
                new = set(changed.question.strip("?").split()) - set(question.strip("?").split())
                assert new
                assert not any(word in TEXTS[passage][1].split() for word in new - {"not"})


def test_answers_are_written_with_their_markers():
    one = Example("Q?", (Statement("1950", "a"),), ("a",))
    other = Example("Who?", (Statement("Edvard Grieg", "c"),), ("c",))

    assert render(one, {"a": 2}) == "1950 [2]"
    assert render(Example("Q?", (), ("a",)), {}) == REFUSAL
    assert render(twofold(one, other), {"a": 2, "c": 1}) == "1950 [2]. Edvard Grieg [1]."
    assert twofold(one, other).question == "Q, and who?"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_pack_is_the_applications_prompts_one_behind_the_other(seed):
    tokenizer = EndingTokenizer()
    corpus = Corpus(question_set(), spans(question_set()))
    mixture = Mixture(prefix_tokens=700, tokens=6000, highlight_tokens=300)
    packer = Packer({corpus: 1.0}, tokenizer=tokenizer, mixture=mixture, seed=seed)
    head = tokenizer.decode(build_prompt(tokenizer, question="", context=Context((), (), 0)).head)
    system = head.removesuffix("Sources:\n\n")  # a conversation may stand between

    for pack in itertools.islice(packer, 12):
        shared = tokenizer.decode(pack.prefix)
        assert shared.startswith(system)
        for branch in pack.branches:
            text = tokenizer.decode([*pack.prefix, *branch.prompt])
            answer = tokenizer.decode([token for token in branch.answer if token])
            assert branch.answer[-1] == 0
            question = text.rpartition("Question: ")[2].split("\n")[0]
            known = {asked: (answers, passage) for asked, answers, passage in ASKED.values()}
            if answer == REFUSAL:
                passage = known[question][1] if question in known else None
                assert passage is None or TEXTS[passage][1] not in text
            elif question in known:
                said, _, marker = answer.partition(" [")
                assert said in known[question][0]
                number = int(marker.rstrip("]."))
                assert TEXTS[known[question][1]][1] in text.split(f"[{number}] ")[1]


def test_packs_of_one_seed_are_always_the_same():
    def made():
        corpus = Corpus(question_set(), spans(question_set()))
        packer = Packer(
            {corpus: 1.0}, tokenizer=EndingTokenizer(), mixture=Mixture(prefix_tokens=900, tokens=6000), seed=5
        )
        return [pack.ids.tolist() for pack in itertools.islice(packer, 5)]

    assert made() == made()
