"""The default generator, where installed, gives the tokens of transformers' generate."""

import os
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.tokenizer import ChatTokenizer
from generation.types import ServingPath
from tests.generation.fakes import RecordingObserver, read, request

MODELS = Path(os.environ.get("FOOTNOTE_MODELS_DIR") or Path(platformdirs.user_cache_dir("footnote")) / "models")
MODEL = MODELS / "SmolLM2-135M-Instruct"

pytestmark = pytest.mark.skipif(not MODEL.is_dir(), reason="the default generator is not installed here")


async def test_greedy_output_of_the_default_model_equals_generate() -> None:
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = ChatTokenizer.load(str(MODEL))
    frame = tokenizer.chat_frame(["user"])
    prompt = (*frame[0], *tokenizer.encode("What is a footnote? Answer in one paragraph."), *frame[1])
    reference: Any = AutoModelForCausalLM.from_pretrained(str(MODEL), dtype=torch.float32, local_files_only=True)
    ids = torch.tensor([prompt])
    expected = reference.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=32, do_sample=False)
    del reference

    engine = LocalEngine.load(EngineConfig(model=str(MODEL), device="cpu", dtype="float32", step_tokens=20), tokenizer)
    _, done = await read(engine.submit(request(prompt=prompt, max_tokens=32), observer=RecordingObserver()))
    path = engine.stats().path
    engine.close()

    assert path == ServingPath(layout="slabs", kernels="torch", graphs=False, speculation=True, slower=())
    assert list(done.token_ids) == expected[0, len(prompt) :].tolist()
    assert "footnote" in done.text.lower()
