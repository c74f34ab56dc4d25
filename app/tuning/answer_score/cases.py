"""Asks training questions of whole collections, and records the candidates with their values and what is right.

Every document of a set is in one collection, as in a library. From a share of the questions the documents that answer
are hidden, so that near misses of the same collection are all that is found. Other questions were written by people to
have no answer, beside a passage that looks as if it answered. All questions are about documents that were held back
from the span reader's training, because a reader is surer of what it has seen.
"""

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from app.answering.quoting.passage_reader import PassageReader
from app.evaluation.answer_measurement import asked
from app.evaluation.dataset import read_question_set
from app.evaluation.retrieval_metrics import locate
from app.evaluation.scratch import PRINCIPAL, Ingested, ingest, lead, scratch_application
from app.evaluation.types import Options, QuestionSet, SetQuestion
from app.models.loading import load_judge, load_reader
from app.server.state import State
from app.settings import Settings
from app.tuning.evidence_reader.mixture import RULES, documents_of, folder_of, is_held_back
from retrieval.compress import compress
from retrieval.types import Context, Hit, SearchMode

TOP_K = 8
_HIDDEN = 0.25  # share of the questions whose answering documents are hidden
COMPANY = 25
"""Documents beside the right ones, where questions do not name their subject."""
_LEAST_ANSWER = 3  # characters; a shorter answer is found in any text


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How a training set is used: `questions` about the documents held back, which lie among `documents` of the set.

    `lacking` are so many that people wrote to have no answer there. With `near` a question is asked of its documents
    and `COMPANY` others, because it does not name its subject.
    """

    questions: int
    documents: int
    lacking: int = 0
    near: bool = False


USES: Mapping[str, Use] = {
    "squad-train-44": Use(questions=240, lacking=240, documents=1500),
    "squad2-train-unans": Use(questions=170, lacking=240, documents=1100),
    "squadshift-new-wiki": Use(questions=100, documents=800),
    "nq-gold": Use(questions=100, documents=500),
    "sleepqa": Use(questions=30, documents=500),
    "selqa": Use(questions=110, documents=900),
    "fairytaleqa": Use(questions=80, documents=250, near=True),
    "quoref-contrast": Use(questions=50, documents=367, near=True),
    "wtq-lookups": Use(questions=120, documents=250, near=True),
    "tatqa-test-gold": Use(questions=70, documents=250, near=True),
    "ait-qa": Use(questions=60, documents=179, near=True),
    "synthetic-forms": Use(questions=40, lacking=40, documents=150, near=True),
}
"""The training sets with spans of answers."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question and its candidates.

    Attributes:
        dataset: The set's name.
        question_id: The question's id in the set.
        answerable: Whether a document that answers was in scope.
        written: Whether people wrote the question to have no answer.
        values: For each candidate the values of `quoting.score.values`.
        right: For each candidate whether it meets a gold span.
        said: For each candidate whether it holds the text of a gold answer elsewhere; such ones teach nothing.
        pointed: For each candidate whether its highlighted words meet a gold span.
    """

    dataset: str
    question_id: str
    answerable: bool
    written: bool
    values: tuple[Mapping[str, float], ...]
    right: tuple[bool, ...]
    said: tuple[bool, ...]
    pointed: tuple[bool, ...]


def cases(sets: Path, settings: Settings, data_dir: Path, uses: Mapping[str, Use] = USES) -> Iterator[Case]:
    """The cases of the sets in the folder `sets`, asked of an application over `data_dir`.

    Raises:
        QuestionSetMalformed: A set is missing or wrong.
        SetupError: The data dir holds something else.
    """
    reader, judge = load_reader(settings), load_judge(settings)
    with scratch_application(settings, data_dir=data_dir) as state:
        assert state.serving.models is not None, "a scratch application has models"
        passage_reader = PassageReader(embedder=state.serving.models.embedder, reader=reader, judge=judge)
        for name, use in uses.items():
            folder = folder_of(sets, name)
            whole = read_question_set(folder)
            beside = [read_question_set(folder_of(sets, other)) for other in RULES[name].beside]
            question_set = part_of(whole, use, document_of=documents_of(folder, whole), beside=beside)
            ingested = ingest(state, question_set, on_progress=lambda _done, _total: None)
            shuffled = random.Random(hashlib.sha256(name.encode()).digest())  # noqa: S311 - a sample
            for question in question_set.questions.values():
                found = _case(state, passage_reader, question_set, question, ingested, use, shuffled)
                if found is not None:
                    yield found


def part_of(
    question_set: QuestionSet, use: Use, *, document_of: Mapping[str, str], beside: Sequence[QuestionSet] = ()
) -> QuestionSet:
    """The passages of a set held back from training and its first others, and questions about the former.

    Args:
        question_set: The set.
        use: How many passages and questions.
        document_of: The document of each passage, by which it is held back.
        beside: Sets whose unanswerable questions are about this set's passages.
    """
    held = {key for key in question_set.documents if is_held_back(question_set.name, document_of[key])}
    others = [key for key in question_set.documents if key not in held]
    chosen_keys = {*held, *others[: max(0, use.documents - len(held))]}
    kept = {key: document for key, document in question_set.documents.items() if key in chosen_keys}
    asked_of = [
        question
        for question in question_set.questions
        if question_set.relevant(question) and question_set.relevant(question) <= held
    ]
    chosen = sorted(asked_of, key=_drawn)[: use.questions]
    lacking = {
        question.id: question
        for one in (question_set, *beside)
        for question in one.questions.values()
        if question.unanswerable and _near_miss(question) in held
    }
    unanswerable = sorted(lacking, key=_drawn)[: use.lacking]
    return QuestionSet(
        name=question_set.name,
        documents=kept,
        questions={question: question_set.questions[question] for question in chosen}
        | {question: lacking[question] for question in unanswerable},
        judgments={question: question_set.judgments[question] for question in chosen},
        spans={question: question_set.spans[question] for question in chosen if question in question_set.spans},
        fingerprint=question_set.fingerprint,
    )


def _drawn(question: str) -> bytes:
    return hashlib.blake2b(question.encode(), digest_size=16).digest()


def _near_miss(question: SetQuestion) -> str:
    """The passage that an unanswerable question is about, "" where the set does not say."""
    return question.metadata.get("context_id", "")


def _case(
    state: State,
    passage_reader: PassageReader,
    question_set: QuestionSet,
    question: SetQuestion,
    ingested: Ingested,
    use: Use,
    shuffled: random.Random,
) -> Case | None:
    """One question, asked; None where its gold spans are not in the documents or nothing was found."""
    relevant = {document for document in question_set.relevant(question.id) if document in ingested.document_ids}
    gold = gold_of(state, question_set, question, ingested)
    hidden = not question.unanswerable and shuffled.random() < _HIDDEN
    if not gold and not question.unanswerable:
        return None
    scope: tuple[str, ...] | None = None
    if use.near:
        own = relevant or {_near_miss(question)} & ingested.document_ids.keys()
        others = sorted(ingested.document_ids.keys() - own)
        beside = shuffled.sample(others, min(COMPANY, len(others)))
        scope = tuple(ingested.document_ids[document] for document in [*sorted(own), *beside])
    hits = hits_of(state, question, ingested, scope=scope)
    if hidden:
        hits = [hit for hit in hits if hit.chunk.document_id not in {ingested.document_ids[one] for one in relevant}]
    assert state.serving.models is not None, "the scratch application has models"
    vector = partial(state.serving.models.embedder.embed_query, question.text)
    found = passage_reader.scored(question.text, context_of(state, question, hits[:TOP_K]), question_vector=vector)
    if not found.candidates:
        return None
    answers = [answer.casefold() for answer in question.answers if len(answer) >= _LEAST_ANSWER]
    right, said, pointed = [], [], []
    for candidate, highlight in zip(found.candidates, found.highlights, strict=True):
        spans = gold.get(candidate.source.hit.chunk.document_id, ())
        span = candidate.span
        meets = any(start < span.end_char and span.start_char < end for start, end in spans)
        right.append(meets)
        said.append(not meets and any(answer in candidate.text.casefold() for answer in answers))
        pointed.append(
            highlight is not None
            and any(start < highlight.end_char and highlight.start_char < end for start, end in spans)
        )
    answerable = not (hidden or question.unanswerable)
    return Case(
        question_set.name,
        question.id,
        answerable,
        question.unanswerable,
        found.values,
        tuple(right),
        tuple(said),
        tuple(pointed),
    )


def gold_of(
    state: State, question_set: QuestionSet, question: SetQuestion, ingested: Ingested
) -> dict[str, list[tuple[int, int]]]:
    """The characters that answer, by the application's document ids."""
    gold: dict[str, list[tuple[int, int]]] = {}
    for span in question_set.spans.get(question.id, ()):
        ours = ingested.document_ids.get(span.document_id)
        if ours is None:
            continue
        text = state.corpus.contents.text(ours, tenant_id=PRINCIPAL.tenant_id)
        place = locate(span, text, lead=len(lead(question_set.documents[span.document_id])))
        if place is not None:
            gold.setdefault(ours, []).append((place.start, place.end))
    return gold


def hits_of(state: State, question: SetQuestion, ingested: Ingested, *, scope: tuple[str, ...] | None) -> list[Hit]:
    """The hits for a question among the documents `scope`, by the application's ids; None is the whole collection."""
    assert state.serving.models is not None, "a scratch application has models"
    search = asked(
        question,
        Options(),
        collection_id=ingested.collection_id,
        mode=SearchMode.HYBRID,
        top_k=2 * TOP_K,
        document_ids=scope,
    )
    return list(state.serving.models.answerer.search(search).hits)


def context_of(state: State, question: SetQuestion, hits: Sequence[Hit]) -> Context:
    """The sources that a service would present of these hits."""
    assert state.serving.models is not None, "a scratch application has models"
    return compress(
        hits,
        query=question.text,
        budget=state.settings.max_context_tokens,
        count_tokens=state.serving.models.embedder.count_tokens,
        order=lambda sources: list(range(len(sources))),
    )


def written(case: Case) -> str:
    """The case as one line of JSON."""
    return json.dumps(asdict(case))


def read_cases(file: Path) -> list[Case]:
    """The cases that `written` wrote, one a line."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.append(
            Case(
                row["dataset"],
                row["question_id"],
                row["answerable"],
                row["written"],
                tuple(row["values"]),
                tuple(row["right"]),
                tuple(row["said"]),
                tuple(row["pointed"]),
            )
        )
    return found
