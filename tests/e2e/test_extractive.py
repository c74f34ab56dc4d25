"""A server without a language model, from an installation that has the embedder alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.models.catalog import ALL_MINILM_L6_V2
from app.models.fetch import is_fetched
from app.settings import load_settings
from tests.server import Server

TEXT = (
    "Northwind makes turbines for small rivers.\n\nThe plant in Oslo was closed on 4 May 2024 after a fire. "
    "Nobody was hurt.\n\nZoë Müller became chief financial officer in March 2023."
)


@pytest.fixture(scope="module")
def extractive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    models_dir = load_settings().models_dir
    if not is_fetched(ALL_MINILM_L6_V2, models_dir=models_dir):
        pytest.skip(f"{ALL_MINILM_L6_V2.name} not fetched: run `footnote models fetch`")
    folder: Path = tmp_path_factory.mktemp("extractive")
    (folder / "models").mkdir()
    (folder / "models" / ALL_MINILM_L6_V2.name).symlink_to(models_dir / ALL_MINILM_L6_V2.name)
    server = Server(folder / "data", generator="extractive", models_dir=folder / "models")
    try:
        yield server.start()
    finally:
        server.close()


def test_it_answers_cites_and_refuses_without_a_generators_weights(extractive: Server) -> None:
    document = extractive.upload("northwind.txt", TEXT.encode())
    answer = extractive.http.post("/v1/ask", json={"question": "When was the plant in Oslo closed?"}).json()
    refusal = extractive.http.post("/v1/ask", json={"question": "Which enzyme splits lactose?"}).json()

    assert answer["answered"]
    assert "The plant in Oslo was closed on 4 May 2024 after a fire. [1]" in answer["answer"]
    for citation in answer["citations"]:
        assert citation["cited_text"] == TEXT[citation["start_char"] : citation["end_char"]]
        assert citation["document_id"] == document["id"]
    assert (answer["usage"]["completion_tokens"], answer["model"]) == (0, "evidence-minilm-l6")
    assert not refusal["answered"]
    assert extractive.http.get("/v1/models/footnote").json()["generator"] == "extractive"
    assert extractive.metric("footnote_engine_decode_tokens_total") == 0
