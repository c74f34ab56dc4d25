"""The real default models, once `footnote models fetch` has run, load and behave."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.models.catalog import ALL_MINILM_L6_V2, SMOLLM2_135M_INSTRUCT, PackagedModel
from app.models.fetch import is_fetched
from app.settings import Settings


def fetched(model: PackagedModel) -> Path:
    models_dir = Settings().models_dir
    if not is_fetched(model, models_dir=models_dir):
        pytest.skip(f"{model.name} is not fetched; run `footnote models fetch`")
    return models_dir / model.name


def test_the_generators_tokenizer_round_trips_and_knows_its_turns() -> None:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(fetched(SMOLLM2_135M_INSTRUCT))
    text = "Über 1,234 m²\n\n  indented 12%  你好 🎉\tend."

    assert tokenizer.convert_tokens_to_ids(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]) == [0, 1, 2]
    assert tokenizer.encode("<|im_start|>user<|im_end|>")[0::2] == [1, 2]
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.model_max_length == 8192
    assert tokenizer.decode(tokenizer.encode(text)) == text
    # Digits one by one, the white space before them whole: SmolLM's own rule.
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("a  12")) == ["a", "ĠĠ", "1", "2"]


def test_the_generators_template_frames_a_conversation() -> None:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(fetched(SMOLLM2_135M_INSTRUCT))
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}]

    framed = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)

    assert framed == "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n"


def test_the_generators_config_is_that_of_a_plain_bfloat16_model() -> None:
    folder = fetched(SMOLLM2_135M_INSTRUCT)
    config = json.loads((folder / "config.json").read_text())
    generation = json.loads((folder / "generation_config.json").read_text())

    assert "quantization_config" not in config
    assert (config["dtype"], config["max_position_embeddings"], config["eos_token_id"]) == ("bfloat16", 8192, 2)
    assert generation["eos_token_id"] == 2
    assert not list(folder.glob("*.gguf"))


def test_the_generator_knows_a_capital_and_stops() -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = fetched(SMOLLM2_135M_INSTRUCT)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)

    with torch.inference_mode():
        answer = model.generate(**prompt, max_new_tokens=24, do_sample=False)[0, prompt["input_ids"].shape[1] :]

    assert "Paris" in tokenizer.decode(answer)
    assert answer[-1] == tokenizer.eos_token_id


def test_the_embedder_puts_a_paraphrase_nearer_than_a_stranger() -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(fetched(ALL_MINILM_L6_V2)), device="cpu")
    query, paraphrase, stranger = model.encode(
        ["How do I cancel my order?", "Ways to call off a purchase", "The moon orbits the earth"],
        normalize_embeddings=True,
    )

    assert query.shape == (384,)
    assert query @ paraphrase > 0.4 > 0.2 > query @ stranger
