"""retrieval.encoder honours what a model declares: prompts before texts, and how many dimensions to keep."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval.encoder import SentenceEncoder
from retrieval.errors import EmbedderUnavailable
from tests.retrieval.encoder_folder import TEXTS, build_tiny_model, reference


def test_declared_prompts_are_used_and_leave_documents_less_room(tiny_folder: Path, tmp_path: Path) -> None:
    build_tiny_model(tmp_path, prompts={"query": "query : ", "passage": "passage : "})
    folder = tmp_path / "tiny"
    encoder = SentenceEncoder.load(str(folder), device="cpu", dtype="float32")

    assert encoder.info.max_tokens == 10
    expected = reference(folder, ["query : cats", "passage : cats"], prompt="")
    np.testing.assert_allclose(encoder.embed_query("cats"), expected[0], atol=1e-5)
    np.testing.assert_allclose(encoder.embed_documents(["cats"])[0], expected[1], atol=1e-5)


QUERY, PASSAGE = "query : ", "passage : the "


@pytest.mark.parametrize(
    ("prompts", "default", "before_query", "before_document"),
    [
        ({}, None, "", ""),
        ({"query": QUERY}, None, QUERY, ""),
        ({"query": QUERY, "document": PASSAGE}, None, QUERY, PASSAGE),
        ({"query": QUERY, "corpus": PASSAGE}, None, QUERY, PASSAGE),
        ({"search_query": QUERY, "search_document": PASSAGE}, None, QUERY, PASSAGE),
        ({"retrieval.query": QUERY, "retrieval.passage": PASSAGE}, None, QUERY, PASSAGE),
        ({"web_search_query": QUERY, "sts_query": "cats"}, None, QUERY, ""),
        ({"query": QUERY, "document": PASSAGE}, "document", QUERY, PASSAGE),
        ({"query": QUERY}, "query", QUERY, ""),
        ({"document": PASSAGE}, "document", "", PASSAGE),
        ({"clustering": "cats "}, "clustering", "cats ", "cats "),
        ({"query": QUERY, "clustering": "cats "}, "clustering", QUERY, "cats "),
        ({"clustering": "cats "}, None, "", ""),
    ],
    ids=[
        "none",
        "query alone",
        "document",
        "corpus",
        "nomic",
        "jina",
        "several tasks",
        "default is a document's",
        "default is a question's",
        "default is a document's alone",
        "default for both",
        "default for the other",
        "another task's",
    ],
)
def test_questions_and_documents_get_the_prompts_the_model_declares_for_them(
    tmp_path: Path, prompts: dict[str, str], default: str | None, before_query: str, before_document: str
) -> None:
    build_tiny_model(tmp_path, prompts=prompts, default=default)
    folder = tmp_path / "tiny"
    encoder = SentenceEncoder.load(str(folder), device="cpu", dtype="float32")

    expected = reference(folder, [before_query + "acme rose", before_document + "acme rose"], prompt="")
    np.testing.assert_allclose(encoder.embed_query("acme rose"), expected[0], atol=1e-5)
    np.testing.assert_allclose(encoder.embed_documents(["acme rose"])[0], expected[1], atol=1e-5)
    assert encoder.info.max_tokens == 12 - len(before_document.split())


def test_the_bill_counts_the_tokens_the_model_reads(tmp_path: Path) -> None:
    build_tiny_model(tmp_path, prompts={"query": QUERY, "document": PASSAGE})
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tmp_path / "tiny"), device="cpu", local_files_only=True)
    read: list[int] = []
    model[0].register_forward_pre_hook(lambda _, inputs: read.append(int(inputs[0]["attention_mask"].sum())))
    encoder = SentenceEncoder(model, name="tiny", revision="r", batch_tokens=30)

    for text in TEXTS:
        read.clear()
        encoder.embed_query(text)
        assert encoder.count_query(text) == sum(read)
    read.clear()
    encoder.embed_documents(TEXTS)
    assert encoder.count_documents(TEXTS, counted=[encoder.count_tokens(text) for text in TEXTS]) == sum(read)
    assert encoder.count_query("cats") == 2 + 2 + 1
    assert encoder.count_query("cats " * 50) == 12


def test_without_a_prompt_the_bill_is_the_texts_own_tokens(tiny: SentenceEncoder) -> None:
    assert tiny.count_query("acme rose") == tiny.count_tokens("acme rose") == 4
    assert tiny.count_documents(["acme rose", "cats"], counted=[4, 3]) == 7
    assert tiny.count_query("cats " * 50) == 12


def test_prompts_take_their_share_of_a_batch(tmp_path: Path) -> None:
    build_tiny_model(tmp_path, prompts={"document": PASSAGE})
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tmp_path / "tiny"), device="cpu", local_files_only=True)
    shapes: list[tuple[int, int]] = []
    model[0].register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0]["input_ids"].shape)))

    SentenceEncoder(model, name="tiny", revision="r", batch_tokens=30).embed_documents(["cats"] * 20)

    assert sum(count for count, _ in shapes) == 20
    assert all(count * length <= 30 for count, length in shapes)


def test_another_document_prompt_is_another_revision_and_another_query_prompt_is_not(tmp_path: Path) -> None:
    def revision(name: str, **prompts: str) -> str:
        build_tiny_model(tmp_path / name, prompts=prompts)
        return SentenceEncoder.load(str(tmp_path / name / "tiny"), device="cpu", dtype="float32").info.revision

    plain = revision("plain")

    assert revision("query", query=QUERY) == plain
    assert len({plain, revision("document", document=PASSAGE), revision("other", document=QUERY)}) == 3


def test_a_prompt_that_leaves_no_room_is_refused(tmp_path: Path) -> None:
    build_tiny_model(tmp_path, prompts={"document": "the " * 12})

    with pytest.raises(EmbedderUnavailable, match="leaves no room"):
        SentenceEncoder.load(str(tmp_path / "tiny"), device="cpu", dtype="float32")


def _unit_prefix(rows: Any, dimensions: int) -> Any:
    kept = rows[:, :dimensions]
    return kept / np.linalg.norm(kept, axis=1, keepdims=True)


def test_asked_for_fewer_dimensions_it_keeps_the_first_at_unit_length(tiny_folder: Path, tiny: SentenceEncoder) -> None:
    short = SentenceEncoder.load(str(tiny_folder), device="cpu", dtype="float32", dimensions=8)

    rows = short.embed_documents(TEXTS)

    np.testing.assert_allclose(rows, _unit_prefix(tiny.embed_documents(TEXTS), 8), atol=1e-5)
    np.testing.assert_allclose(short.embed_query(TEXTS[0]), rows[0], atol=1e-5)
    assert rows.shape == (len(TEXTS), 8)
    assert (short.info.dim, short.info.revision) == (8, tiny.info.revision)
    assert short.info != tiny.info


def test_the_dimensions_a_model_declares_are_kept_unless_others_are_asked_for(tmp_path: Path) -> None:
    build_tiny_model(tmp_path, truncate_dim=12)
    folder = str(tmp_path / "tiny")

    declared = SentenceEncoder.load(folder, device="cpu", dtype="float32")
    asked = SentenceEncoder.load(folder, device="cpu", dtype="float32", dimensions=8)

    assert (declared.info.dim, asked.info.dim) == (12, 8)
    rows = declared.embed_documents(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(asked.embed_documents(TEXTS), _unit_prefix(rows, 8), atol=1e-5)


def test_more_dimensions_than_there_are_are_refused(tiny_folder: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match="16 dimensions, not of 32"):
        SentenceEncoder.load(str(tiny_folder), device="cpu", dtype="float32", dimensions=32)
