"""retrieval.cross_encoder scores pairs as sentence-transformers does, and counts what the model reads."""

import json
import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.cross_encoder import CrossEncoderReranker
from retrieval.errors import RerankerUnavailable
from tests.retrieval.cross_encoder_folder import LIMIT, WORDS, build_bert

QUERY = "revenue in spring"
PASSAGES = ["acme revenue rose in spring", "cats", "the dogs of winter fell", "a", "revenue"]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_bert(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def tiny(folder: Path) -> CrossEncoderReranker:
    return CrossEncoderReranker.load(str(folder), device="cpu", dtype="float32")


def test_the_scores_are_the_librarys_own(tiny: CrossEncoderReranker, folder: Path) -> None:
    from sentence_transformers import CrossEncoder

    reference = CrossEncoder(str(folder), device="cpu").predict([(QUERY, passage) for passage in PASSAGES])

    scores = tiny.score(QUERY, PASSAGES)
    assert scores == pytest.approx(reference.tolist(), abs=1e-6)
    assert max(scores) - min(scores) > 0.01, "else any order would pass"


@settings(max_examples=25, deadline=None)
@given(passages=st.lists(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join), max_size=8))
def test_in_batches_of_any_size_a_pair_has_the_score_it_has_alone(folder_model: object, passages: list[str]) -> None:
    batched = CrossEncoderReranker(folder_model, name="tiny", revision="1", batch_tokens=2 * LIMIT)

    alone = [batched.score(QUERY, [passage])[0] for passage in passages]

    assert batched.score(QUERY, passages) == pytest.approx(alone, abs=1e-6)
    assert all(0 <= score <= 1 for score in alone)


@pytest.fixture(scope="module")
def folder_model(folder: Path) -> object:
    from sentence_transformers import CrossEncoder

    return CrossEncoder(str(folder), device="cpu")


def test_no_batch_is_larger_than_its_budget_and_every_pair_is_read_once(folder: Path) -> None:
    from sentence_transformers import CrossEncoder

    read: list[tuple[int, ...]] = []
    model = CrossEncoder(str(folder), device="cpu")
    model.register_forward_pre_hook(lambda _, inputs: read.append(tuple(inputs[0]["input_ids"].shape)))
    reranker = CrossEncoderReranker(model, name="tiny", revision="1", batch_tokens=20)

    reranker.score(QUERY, PASSAGES)

    assert sum(pairs for pairs, _ in read) == len(PASSAGES)
    assert all(pairs * width <= 20 or pairs == 1 for pairs, width in read)
    assert [width for _, width in read] == sorted((width for _, width in read), reverse=True)


@pytest.mark.parametrize(
    ("passages", "tokens"),
    [
        ([], 0),
        (["cats"], 3 + 3 + 1),  # [CLS] query [SEP] passage [SEP]
        (["cats", "the dogs"], 7 + 8),  # padding is not read
        (["cats " * 50], LIMIT),
    ],
)
def test_the_tokens_are_those_the_model_reads(tiny: CrossEncoderReranker, passages: list[str], tokens: int) -> None:
    assert tiny.count_tokens(QUERY, passages) == tokens


def test_counting_before_changes_no_score_whatever_was_counted(tiny: CrossEncoderReranker) -> None:
    plain = tiny.score(QUERY, PASSAGES)

    for query, passages in ((QUERY, PASSAGES), (QUERY, PASSAGES[1:]), ("cats", PASSAGES)):
        tiny.count_tokens(query, passages)
        assert tiny.score(QUERY, PASSAGES) == plain


def test_nothing_to_score_is_no_score(tiny: CrossEncoderReranker) -> None:
    assert tiny.score(QUERY, []) == []


def test_several_threads_get_the_scores_of_one(tiny: CrossEncoderReranker) -> None:
    alone = {passage: tiny.score(QUERY, [passage])[0] for passage in PASSAGES}

    with ThreadPoolExecutor(4) as pool:
        scores = list(pool.map(lambda turn: tiny.score(QUERY, PASSAGES[turn % 5 :]), range(20)))

    for turn, found in enumerate(scores):
        assert found == pytest.approx([alone[passage] for passage in PASSAGES[turn % 5 :]], abs=1e-6)


def test_it_is_known_by_its_folder_and_its_weights(tiny: CrossEncoderReranker, tmp_path: Path) -> None:
    other = CrossEncoderReranker.load(str(build_bert(tmp_path, seed=1)), device="cpu")

    assert tiny.model == "tiny"
    assert len(tiny.revision) == 16
    assert tiny.revision != other.revision


def test_a_model_that_is_not_here_is_named_with_what_to_do() -> None:
    with pytest.raises(RerankerUnavailable, match=r'"acme/reranker" is not installed\..*footnote models'):
        CrossEncoderReranker.load("acme/reranker", device="cpu")


def test_a_model_without_a_head_for_pairs_is_refused_instead_of_given_a_random_one(tmp_path: Path) -> None:
    with pytest.raises(RerankerUnavailable, match="no reranker"):
        CrossEncoderReranker.load(str(build_bert(tmp_path, labels=None)), device="cpu")


def test_a_model_with_several_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RerankerUnavailable, match="gives 3 scores"):
        CrossEncoderReranker.load(str(build_bert(tmp_path, labels=3)), device="cpu")


@pytest.mark.parametrize("damage", ["config.json", "model.safetensors"])
def test_damaged_files_are_said_to_be(folder: Path, tmp_path: Path, damage: str) -> None:
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / damage).write_bytes(b"{")

    with pytest.raises(RerankerUnavailable, match='"broken" cannot be loaded'):
        CrossEncoderReranker.load(str(broken), device="cpu")


def test_scores_that_are_no_numbers_are_refused(folder: Path) -> None:
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(folder), device="cpu")
    model[0].model.classifier.bias.data.fill_(math.nan)

    with pytest.raises(RerankerUnavailable, match="no numbers"):
        CrossEncoderReranker(model, name="tiny", revision="1", batch_tokens=100).score(QUERY, PASSAGES)


def test_a_logit_becomes_a_probability_also_where_the_model_declares_none(folder: Path, tmp_path: Path) -> None:
    plain = shutil.copytree(folder, tmp_path / "plain")
    about = plain / "config_sentence_transformers.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "activation_fn": "torch.nn.modules.linear.Identity"}))

    logits = CrossEncoderReranker.load(str(plain), device="cpu", dtype="float32")

    own = CrossEncoderReranker.load(str(folder), device="cpu", dtype="float32")
    assert logits.score(QUERY, PASSAGES) == own.score(QUERY, PASSAGES)
