"""app.tuning.span_reader.run: what trains and what is held back, in an order that can be taken up, and what ships."""

import itertools
import json
from dataclasses import asdict

import pytest

from app.models.catalog import ALL_MINILM_L6_V2
from app.models.span_reader import read_reader_manifest
from app.tuning.span_reader.calibration import ALL, Calibrated, Figures
from app.tuning.span_reader.cases import Kind
from app.tuning.span_reader.run import SETS, corpora, endless, publish
from app.tuning.span_reader.training import Recipe, trained_weights
from retrieval.reader_config import Calibration
from tests.app.tuning.drawers import corpus_of, drawers
from tests.retrieval.reader_folder import VOCABULARY, build_base, tokenizer, trained

TOKENIZER = tokenizer(VOCABULARY)
TOKENIZER.no_truncation()
TOKENIZER.no_padding()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a small set by every name that trains; each passage is an article of its own."""
    folder = tmp_path_factory.mktemp("sets")
    for name in SETS:
        made = drawers(120, name=name)
        (folder / name).mkdir()
        documents = [{"_id": one.id, "title": one.id, "text": one.text} for one in made.documents.values()]
        queries = [{"_id": one.id, "text": one.text, "answers": one.answers} for one in made.questions.values()]
        rows = [f"{question}\t{next(iter(found))}\t1" for question, found in made.judgments.items()]
        for file, lines in (
            ("corpus.jsonl", map(json.dumps, documents)),
            ("queries.jsonl", map(json.dumps, queries)),
            ("qrels.tsv", rows),
        ):
            (folder / name / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_a_question_trains_or_is_held_back(data):
    train, held = corpora(data, seed=1), corpora(data, seed=1, held_back=True)

    assert [corpus.question_set.name for corpus in train] == list(SETS)
    for trains, tests in zip(train, held, strict=True):
        asked, kept = ({example.question for example in corpus.examples} for corpus in (trains, tests))
        assert not asked & kept
        assert asked | kept == {question.text for question in trains.question_set.questions.values()}
    assert 0 < sum(len(corpus.examples) for corpus in held) < sum(len(corpus.examples) for corpus in train) / 5


def test_batches_are_the_same_again_and_every_pass_differs():
    found = [corpus_of(drawers(12))]

    def stream():
        return endless(found, TOKENIZER, size=4, seed=1)

    batches = list(itertools.islice(stream(), 14))
    assert list(itertools.islice(stream(), 9, 14)) == batches[9:]
    assert all(len(batch) == 4 for batch in batches)
    assert batches[:4] != batches[5:9]


def test_what_ships_has_its_calibration_and_says_what_it_is(data, tmp_path):
    from retrieval.span_reader import EncoderSpanReader

    base = build_base(tmp_path / "base")
    model = trained(base)
    kinds = {kind.value: 0.25 for kind in Kind}
    figures = Figures(
        cases=dict.fromkeys(kinds, 77),
        contains=0.811,
        f1=0.722,
        right_passage=0.933,
        refused=kinds,
        area_under_curve={kind: 0.95 for kind in kinds if kind != Kind.ANSWERABLE},
    )
    calibration = Calibration(slope=0.4321, bias=-1.2, threshold=0.3456)
    calibrated = Calibrated(calibration=calibration, measured={ALL: figures, "nq-gold": figures})
    out = tmp_path / "out"
    out.mkdir()

    recipe = Recipe(steps=123, frozen_layers=1)
    publish(model, out, recipe=recipe, trained=corpora(data, seed=1), calibrated=calibrated)

    manifest = read_reader_manifest(out)
    assert manifest is not None
    assert manifest.is_whole(out)
    assert manifest.calibration == calibration
    assert (manifest.name, manifest.base) == ("span-minilm-l6", ALL_MINILM_L6_V2.name)
    reader = EncoderSpanReader.load(out, base, name="tiny", calibration=calibration, device="cpu", dtype="float32")
    (pointer,) = reader.read("revenue", ["acme revenue rose"])
    assert pointer is not None
    card = (out / "README.md").read_text(encoding="utf-8")
    for said in ("Apache-2.0", "123 steps", "0.4321", "-1.2000", "0.3456", "0.811", "0.722", "0.933", *SETS):
        assert said in card
    assert json.loads(card.split("```json")[1].split("```")[0])["recipe"] == asdict(recipe)
    assert str(tmp_path) not in card
    assert set(trained_weights(model)) >= {"head.weight", "head.bias"}
