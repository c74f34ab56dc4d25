"""Calibration cases: questions of held-out articles with an answering passage, and with none in three ways."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.evaluation.squad import contains_any
from app.tuning.adapter.examples import Example, perturbed
from app.tuning.adapter.packs import Corpus

SHOWN = 3  # passages a question is asked of
_DRAWS = 50  # at random, before a corpus is taken to hold too few passages without the answer


class Kind(StrEnum):
    """The kind of a case: one passage answers, or none of the three answers, in one of three ways."""

    ANSWERABLE = "answerable"
    NEAR = "near"
    PERTURBED = "perturbed"
    RANDOM = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question and its passages; `right` is the index of the answering one."""

    question: str
    passages: tuple[str, ...]
    kind: Kind
    golds: tuple[str, ...] = ()
    right: int | None = None


def cases_of(corpus: Corpus, *, questions: int, seed: int) -> list[Case]:
    """Each question asked of three passages with the right one, of three near it, of three at random, and perturbed.

    The perturbed question is asked of the passages that answer the original; not every question can be.
    """
    random_ = random.Random(f"{seed} {corpus.question_set.name}")  # noqa: S311  # nothing secret is drawn
    examples = [example for example in corpus.examples if example.golds and example.statements]
    random_.shuffle(examples)
    found: list[Case] = []
    asked = 0
    for example in examples:
        if asked == questions:
            break
        cases = _cases(corpus, example, random_)
        asked += bool(cases)
        found += cases
    return found


def _cases(corpus: Corpus, example: Example, random_: random.Random) -> list[Case]:
    """The cases of one question; empty when the corpus has too few other passages."""
    right = example.statements[0].passage
    near = corpus.near(example.question, without=example.needs)
    silent = [key for key in near if _is_silent(corpus, key, example)][:SHOWN]
    drawn: list[str] = []
    for key in random_.choices(corpus.keys, k=_DRAWS):
        if len(drawn) < SHOWN and key not in drawn and _is_silent(corpus, key, example):
            drawn.append(key)
    if min(len(near) + 1, len(silent), len(drawn)) < SHOWN:
        return []
    place = random_.randrange(SHOWN)
    company = near[: SHOWN - 1]
    shown = [*company[:place], right, *company[place:]]

    def case(kind: Kind, keys: Sequence[str], question: str = example.question) -> Case:
        texts = tuple(corpus.text(key) for key in keys)
        if kind is Kind.ANSWERABLE:
            return Case(question=question, passages=texts, kind=kind, golds=example.golds, right=place)
        return Case(question=question, passages=texts, kind=kind)

    cases = [case(Kind.ANSWERABLE, shown), case(Kind.NEAR, silent), case(Kind.RANDOM, drawn)]
    others = [corpus.text(key) for key in corpus.siblings(right)[: 2 * SHOWN]] or [corpus.text(key) for key in drawn]
    changed = perturbed(example, corpus.text(right), random_=random_, others=others)
    return cases if changed is None else [*cases, case(Kind.PERTURBED, shown, changed.question)]


def _is_silent(corpus: Corpus, key: str, example: Example) -> bool:
    return key not in example.needs and not contains_any(corpus.text(key), example.golds)
