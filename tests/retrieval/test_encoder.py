"""retrieval.encoder gives unit vectors in order, and counts tokens as the model reads them.

A tiny model with random weights shows the mechanics; the default model shows the meaning.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import platformdirs
import pytest

from retrieval.encoder import SentenceEncoder
from retrieval.errors import EmbedderUnavailable
from tests.retrieval.encoder_folder import TEXTS, WORDS, build_tiny_model, reference

pytestmark = pytest.mark.usefixtures("one_thread")


def test_it_equals_sentence_transformers_in_the_order_of_the_texts(tiny: SentenceEncoder, tiny_folder: Path) -> None:
    np.testing.assert_allclose(tiny.embed_documents(TEXTS), reference(tiny_folder, TEXTS), atol=1e-5)
    np.testing.assert_allclose(tiny.embed_query(TEXTS[0]), reference(tiny_folder, TEXTS)[0], atol=1e-5)


def test_rows_are_float32_of_unit_length(tiny: SentenceEncoder) -> None:
    rows = tiny.embed_documents(TEXTS)

    assert rows.shape == (len(TEXTS), 16)
    assert rows.dtype == tiny.embed_query("cats").dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    assert tiny.embed_query("cats").shape == (16,)


def test_half_precision_gives_unit_float32_vectors_of_the_same_direction(
    tiny: SentenceEncoder, tiny_folder: Path
) -> None:
    rows = SentenceEncoder.load(str(tiny_folder), device="cpu", dtype="bfloat16").embed_documents(TEXTS)

    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    assert (rows * tiny.embed_documents(TEXTS)).sum(axis=1).min() > 0.99


def test_no_texts_give_no_rows(tiny: SentenceEncoder) -> None:
    assert tiny.embed_documents([]).shape == (0, 16)


def test_batches_keep_the_token_budget_and_tell_how_far_they_are(tiny_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tiny_folder), device="cpu", local_files_only=True)
    shapes: list[tuple[int, int]] = []
    model[0].register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0]["input_ids"].shape)))
    encoder = SentenceEncoder(model, name="tiny", revision="r", batch_tokens=30)
    done: list[int] = []
    texts = ["cats", "acme revenue rose", "the dogs of acme " * 9, "revenue fell in the spring of"] * 5

    rows = encoder.embed_documents(texts, on_batch=done.append)

    assert sum(count for count, _ in shapes) == len(texts)
    assert all(count * length <= 30 for count, length in shapes)
    assert len(shapes) < len(texts)
    assert done == np.cumsum([count for count, _ in shapes]).tolist()
    np.testing.assert_allclose(rows, reference(tiny_folder, texts), atol=1e-5)


def test_a_text_above_the_budget_goes_alone(tiny_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tiny_folder), device="cpu", local_files_only=True)
    done: list[int] = []

    SentenceEncoder(model, name="tiny", revision="r", batch_tokens=1).embed_documents(TEXTS, on_batch=done.append)

    assert done == [1, 2, 3, 4, 5, 6]


def test_tokens_are_counted_with_specials_and_beyond_the_limit(tiny: SentenceEncoder) -> None:
    assert tiny.count_tokens("") == 2
    assert tiny.count_tokens("acme rose") == 4
    tiny.embed_query("cats")  # sets truncation and padding on the model's own tokenizer
    assert tiny.count_tokens("acme " * 500) == 502


def test_info_identifies_the_model_by_name_limit_and_weights(tiny: SentenceEncoder, tmp_path: Path) -> None:
    build_tiny_model(tmp_path, seed=1)
    other = SentenceEncoder.load(str(tmp_path / "tiny"), device="cpu", dtype="float32")

    assert (tiny.info.model, tiny.info.dim, tiny.info.max_tokens) == ("tiny", 16, 12)
    assert len(tiny.info.revision) == 16
    assert other.info.revision != tiny.info.revision


def test_threads_take_turns_and_get_their_own_vectors(tiny: SentenceEncoder) -> None:
    texts = [" ".join(WORDS[i : i + 1 + i % 4]) for i in range(12)] * 4
    expected = {text: tiny.embed_query(text) for text in texts}

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(tiny.embed_query, texts))
        counts = list(threads.map(tiny.count_tokens, texts))

    for text, vector in zip(texts, found, strict=True):
        np.testing.assert_allclose(vector, expected[text], atol=1e-6)
    assert counts == [len(text.split()) + 2 for text in texts]


@pytest.mark.parametrize("model", ["/nowhere/some-model", "no-such/model", "bad id !"])
def test_a_missing_model_says_what_to_run(model: str) -> None:
    with pytest.raises(EmbedderUnavailable, match="footnote models fetch"):
        SentenceEncoder.load(model, device="cpu")


def test_a_damaged_model_says_so_and_names_no_path(tiny_folder: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "tiny"
    shutil.copytree(tiny_folder, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])

    with pytest.raises(EmbedderUnavailable, match="damaged") as caught:
        SentenceEncoder.load(str(folder), device="cpu")
    assert str(tmp_path) not in str(caught.value)


@pytest.fixture(scope="module")
def default_folder() -> Path:
    models = os.environ.get("FOOTNOTE_MODELS_DIR") or f"{platformdirs.user_cache_dir('footnote')}/models"
    folder = Path(models) / "all-MiniLM-L6-v2"
    if not (folder / "model.safetensors").exists():
        pytest.skip("the default embedder is not installed; run `footnote models fetch`")
    return folder


PASSAGES = [
    "The quarterly revenue of the company rose by twelve percent.",
    "A cat slept on the warm windowsill all afternoon.",
    "Photosynthesis turns light into chemical energy in plants. " * 40,
    "Der Umsatz stieg.",
    "x",
]


def test_the_default_embedder_equals_sentence_transformers_and_tells_meanings_apart(default_folder: Path) -> None:
    encoder = SentenceEncoder.load(str(default_folder), device="cpu", dtype="float32")

    rows = encoder.embed_documents(PASSAGES)

    np.testing.assert_allclose(rows, reference(default_folder, PASSAGES), atol=1e-5)
    assert (encoder.info.model, encoder.info.dim, encoder.info.max_tokens) == ("all-MiniLM-L6-v2", 384, 256)
    assert encoder.count_tokens(PASSAGES[2]) > 256
    for query, passage in [("sales growth of a firm", 0), ("a sleeping pet", 1), ("how leaves use sunlight", 2)]:
        similarity = rows @ encoder.embed_query(query)
        assert similarity.argmax() == passage
        assert similarity[passage] > 0.4
    assert rows[0] @ rows[1] < 0.2
