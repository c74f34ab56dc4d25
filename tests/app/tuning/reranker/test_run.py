"""app.tuning.reranker.run trains a cross-encoder that loads, and an interrupted run ends as a whole one."""

from pathlib import Path

import numpy as np
import pytest

from app.tuning.reranker.examples import Candidates, Example
from app.tuning.reranker.run import main
from app.tuning.reranker.training import Recipe, Trainer, measure, mixed, ndcg, start
from retrieval.cross_encoder import CrossEncoderReranker
from tests.app.tuning.reranker.collection_folder import write_collection
from tests.retrieval.cross_encoder_folder import build_bert

RECIPE = Recipe(layers=1, max_tokens=12, steps=6, questions=2, negatives=2, learning_rate=0.01)
EXAMPLES = [
    Example("revenue in spring", "acme revenue rose in spring", ("the cats", "dogs of winter")),
    Example("cats", "the cats", ("acme revenue rose in spring", "dogs of winter")),
    Example("dogs in winter", "dogs of winter", ("acme revenue rose in spring", "the cats")),
]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An embedder's weights: no head."""
    return build_bert(tmp_path_factory.mktemp("base"), labels=None)


def weights(trainer: Trainer) -> list[float]:
    return [float(weight.detach().double().sum()) for weight in trainer.model.parameters()]


def test_a_run_taken_up_from_its_checkpoint_ends_as_one_that_was_never_interrupted(base: Path, tmp_path: Path) -> None:
    whole = Trainer(start(base, RECIPE), RECIPE)
    losses = list(whole.run(EXAMPLES))

    first = Trainer(start(base, RECIPE), RECIPE)
    steps = first.run(EXAMPLES)
    begun = [next(steps) for _ in range(4)]
    first.save_state(tmp_path / "training.pt")
    second = Trainer(start(base, RECIPE), RECIPE)
    second.load_state(tmp_path / "training.pt")
    ended = list(second.run(EXAMPLES))

    assert begun + ended == pytest.approx(losses, rel=1e-6)
    assert len(losses) == RECIPE.steps
    assert weights(second) == pytest.approx(weights(whole), rel=1e-6)


def test_training_lowers_the_loss_and_leaves_the_word_vectors_alone(base: Path) -> None:
    recipe = Recipe(layers=1, max_tokens=12, steps=60, questions=3, negatives=2, learning_rate=0.01)
    trainer = Trainer(start(base, recipe), recipe)
    embeddings = trainer.model[0].model.bert.embeddings.word_embeddings.weight
    before = embeddings.detach().clone()

    losses = list(trainer.run(EXAMPLES))

    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])
    assert bool((embeddings == before).all())


def test_the_script_leaves_a_model_that_loads_and_a_card_that_says_what_it_is(base: Path, tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "small")
    arguments = f"--data {folder} --base {base} --out {tmp_path / 'out'} --lexical --steps 2 --checkpoint 1 --most 3"

    main([*arguments.split(), "--layers", "1", "--max-tokens", "12", "--questions", "2", "--negatives", "2"])

    model = tmp_path / "out" / "model"
    reranker = CrossEncoderReranker.load(str(model), device="cpu", dtype="float32")
    assert len(reranker.score("revenue", ["acme", "cats"])) == 2
    assert reranker.count_tokens("revenue", ["cats " * 50]) == 12
    card = (model / "README.md").read_text()
    for said in ("small", '"steps": 2', '"torch":', "| small | `", "near misses by BM25."):
        assert said in card
    assert str(tmp_path) not in card


@pytest.mark.parametrize(
    ("ranked", "missing", "value"),
    [([True], 0, 1.0), ([False, True], 0, 1 / np.log2(3)), ([False], 0, 0.0), ([True], 1, 1 / (1 + 1 / np.log2(3)))],
)
def test_ndcg_is_the_textbooks(ranked: list[bool], missing: int, value: float) -> None:
    assert ndcg(ranked, missing=missing) == pytest.approx(value)


def test_ndcg_looks_at_the_first_ten_only() -> None:
    assert ndcg([False] * 10 + [True], missing=0) == 0.0
    assert ndcg([True] * 12, missing=0) == pytest.approx(1.0)


def test_scores_are_mixed_on_one_scale_per_question() -> None:
    first, rerank = np.array([3.0, 2.0, 1.0], np.float32), np.array([-8.0, 0.0, 2.0], np.float32)

    assert mixed(first, rerank, share=0.0).tolist() == pytest.approx([1.0, 0.5, 0.0])
    assert mixed(first, rerank, share=1.0).tolist() == pytest.approx([0.0, 0.8, 1.0])
    assert mixed(first, rerank, share=0.5).tolist() == pytest.approx([0.5, 0.65, 0.5])


class Contrary:
    """Scores a pair by the number its passage is."""

    def predict(self, pairs: list[tuple[str, str]], **_: object) -> list[float]:
        return [float(passage) for _, passage in pairs]


def test_the_share_0_is_the_first_stage_and_the_share_1_the_reranker_alone() -> None:
    found = Candidates("q", ("1", "2", "3"), (0.9, 0.5, 0.1), (True, False, False), missing=0)

    result = measure(Contrary(), [found])

    assert result[0.0] == 1.0
    assert result[1.0] == pytest.approx(0.5)
