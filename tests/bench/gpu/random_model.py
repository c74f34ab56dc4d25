"""Models and tokenizers made of chance on a device, and our engine over them."""

import copy
import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from generation.accelerator import engine_stream
from generation.batched_draws import BatchedDraws
from generation.config import EngineConfig
from generation.constraints import ConstraintCompiler
from generation.engine import LocalEngine
from generation.graphs import Capture, Recording
from generation.runner import ModelRunner
from generation.tokenizer import ChatTokenizer
from generation.weights import adopt_model
from tests.bench.subjects import Footnote, Generate

PIECES = ("[unknown]", "[", "]", *"0123456789", " ", ".")


def random_model(
    configuration: Any, *, device: torch.device, dtype: torch.dtype, scale: float = 1.0, steep: float = 1.0
) -> Any:
    """A model of these dimensions with the same random matrices at every call, times `scale`, made on the device.

    Its logits are times `steep` besides.
    """
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(configuration, dtype=dtype, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1 and scale != 1.0:
                parameter.mul_(scale)
        model.lm_head.weight.mul_(steep)
    return model


def word_tokenizer(size: int) -> ChatTokenizer:
    """A tokenizer of `size` pieces, brackets and digits among them, so that citations constrain what may come."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    pieces = [*PIECES, *(f" w{number}" for number in range(size - len(PIECES)))]
    backend = Tokenizer(models.WordLevel({piece: token for token, piece in enumerate(pieces)}, unk_token=PIECES[0]))
    return ChatTokenizer(PreTrainedTokenizerFast(tokenizer_object=backend))


class CountedCapture:
    """A `Capture` that counts what is replayed."""

    def __init__(self, inner: Capture) -> None:
        self.replays = 0
        self._inner = inner

    @property
    def trusted(self) -> bool:
        """See `Capture`."""
        return self._inner.trusted

    @trusted.setter
    def trusted(self, trusted: bool) -> None:
        self._inner.trusted = trusted

    def record(self, work: Callable[[], Tensor]) -> Recording:
        """See `Capture.record`."""
        return _CountedRecording(self, self._inner.record(work))


class _CountedRecording:
    def __init__(self, capture: CountedCapture, inner: Recording) -> None:
        self._capture = capture
        self._inner = inner

    def replay(self) -> Tensor:
        """See `Recording.replay`."""
        self._capture.replays += 1
        return self._inner.replay()


def sharing_weights(model: Any) -> Any:
    """A model of the same parameters and buffers, whose layers can be replaced."""
    return copy.deepcopy(model, {id(one): one for one in (*model.parameters(), *model.buffers())})


class RandomFootnote(Footnote):
    """Our engine over a model in memory: pages, and steps captured where there is a capture, on every device."""

    def __init__(self, model: Any, tokenizer: ChatTokenizer, *, capture: Capture | None, **settings: Any) -> None:
        self._model = model
        self.capture = None if capture is None else CountedCapture(capture)
        dtype = str(model.dtype).removeprefix("torch.")
        super().__init__("random", tokenizer, dtype=dtype, speculation=False, **settings)

    def loader(self, config: EngineConfig, tokenizer: ChatTokenizer) -> Callable[[], LocalEngine]:
        """See `Footnote.loader`."""
        model = sharing_weights(self._model)  # adopted, layers are replaced; `generate` needs those of transformers
        model.set_attn_implementation("eager")  # ours is compared with the model's own
        loaded = adopt_model(model, config)
        on_gpu = loaded.device.type == "cuda"

        def serve() -> LocalEngine:
            runner = ModelRunner(
                loaded,
                vocab_size=loaded.vocab_size,
                block_tokens=config.block_tokens,
                prefix_cache=config.prefix_cache,
                layout=None if on_gpu else "pages",
                capture=self.capture,
            )
            runner._draw_rows = BatchedDraws()  # noqa: SLF001 - as on a GPU
            runner.prepare(rows=config.max_running, tokens=loaded.info.context_window)
            self.runner = runner
            return LocalEngine(
                runner,
                tokenizer,
                config,
                info=loaded.info,
                eos_ids=frozenset(),
                vocab_size=loaded.vocab_size,
                constraints=ConstraintCompiler(tokenizer, eos_ids=frozenset(), vocab_size=loaded.vocab_size),
                path=lambda: runner.path(speculation=False),
                working=partial(engine_stream, loaded.device),
            )

        return serve

    def every_block_is_back(self) -> bool:
        """Whether no sequence holds room any more, and the books of the cache balance."""
        until = time.monotonic() + 5
        while (used := self.engine.stats().used_blocks) and time.monotonic() < until:
            time.sleep(0.01)
        self.runner.cache.check_integrity()
        return used == 0

    def close(self) -> None:
        """End the engine and give its memory back."""
        self.engine.close()
        del self.engine, self.runner, self._serve
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


class RandomGenerate(Generate):
    """`transformers.generate` over a model in memory."""

    def __init__(self, model: Any) -> None:
        model.set_attn_implementation("sdpa")
        self.model = model
