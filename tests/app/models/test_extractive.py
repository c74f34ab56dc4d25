"""app.models.extractive: the engine and settings where no language model is served."""

from collections.abc import Mapping
from typing import cast

import pytest
from tokenizers import Tokenizer
from typer.testing import CliRunner

from app.cli.models import commands
from app.errors import SetupError
from app.models.extractive import EmbedderTokenizer, NoEngine
from app.settings import load_settings
from generation.errors import EngineStopped
from generation.ports import Observer
from generation.types import GenerationRequest, SamplingParams
from tests.ingestion.small_tokenizer import word_piece


def test_it_is_alive_does_nothing_and_takes_nothing() -> None:
    engine = NoEngine(revision="1", context_window=64)
    stats = engine.stats()

    assert engine.alive()
    assert (stats.running, stats.waiting, stats.decode_tokens, engine.cached_tokens([1, 2], salt="")) == (0, 0, 0, 0)
    with pytest.raises(EngineStopped):
        engine.submit(GenerationRequest("r", (1,), SamplingParams(max_tokens=1)), observer=cast(Observer, None))


def test_the_embedders_tokenizer_counts_without_special_tokens_and_frames_nothing() -> None:
    backend = Tokenizer.from_str(word_piece().to_str())
    backend.no_truncation()
    backend.no_padding()
    tokenizer = EmbedderTokenizer(backend)

    assert tokenizer.count("of cats") == len(tokenizer.encode("of cats")) == len(backend.encode("of cats").ids) - 2
    assert tokenizer.encode("") == []
    assert tokenizer.chat_frame(["system", "user"]) == ((), (), ())


@pytest.mark.parametrize(
    "fields",
    [
        {"remote_url": "http://gpu/v1", "remote_model": "m"},
        {"draft_model": "m"},
        {"adapter": "folder"},
        {"overflow": "summarise"},
        {"followup": "model"},
    ],
)
def test_settings_that_need_a_language_model_are_refused_by_name(fields: Mapping[str, object]) -> None:
    with pytest.raises(SetupError, match="needs a language model"):
        load_settings(generator="extractive", **fields)


def test_the_list_of_models_says_that_answers_are_quoted() -> None:
    environment = {"FOOTNOTE_GENERATOR": "extractive", "FOOTNOTE_MODELS_DIR": "no-such-folder"}
    result = CliRunner().invoke(commands, ["list"], env=environment, catch_exceptions=False)

    assert result.exit_code == 0
    assert "answers are quoted (extractive)" in result.output
    assert "Keys and values" not in result.output
