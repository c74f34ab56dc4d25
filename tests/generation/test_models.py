"""The engine gives the tokens of transformers' generate, however requests are scheduled."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, BloomConfig, GptOssConfig

from generation.attention import IMPLEMENTATION
from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.errors import ModelUnavailable
from generation.runner import ModelRunner
from generation.tokenizer import ChatTokenizer
from generation.types import Completion, FinishReason
from generation.weights import LoadedModel, adopt_model, load_model
from tests.generation.fakes import RecordingObserver, read, request
from tests.generation.tiny import CONFIGS, VOCAB, tiny_model, tiny_tokenizer

torch.set_num_threads(1)

FAMILIES = list(CONFIGS)


class Served:
    """A tiny model loaded once, and engines over it by their settings."""

    def __init__(self, family: str) -> None:
        self.tokenizer = ChatTokenizer(tiny_tokenizer())
        self.reference: Any = tiny_model(family, attention="eager")
        self.loaded = adopt_model(tiny_model(family, attention="eager"), EngineConfig(model=f"tiny-{family}"))
        self.runners: list[ModelRunner] = []

    def engine(self, **settings: int) -> LocalEngine:
        runner = ModelRunner(self.loaded, vocab_size=VOCAB)
        self.runners.append(runner)
        return LocalEngine(
            runner,
            self.tokenizer,
            EngineConfig(model="tiny", **settings),  # type: ignore[arg-type]
            info=self.loaded.info,
            eos_ids=self.loaded.eos_ids,
            vocab_size=VOCAB,
        )

    def generate(self, prompt: Sequence[int], max_tokens: int) -> list[int]:
        """The oracle. It is given the mask: left to itself it takes a padding id in the prompt for padding."""
        ids = torch.tensor([list(prompt)])
        with torch.inference_mode():
            output = self.reference.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=max_tokens,
                do_sample=False,
                pad_token_id=0,
                eos_token_id=None,
            )
        generated: list[int] = output[0, len(prompt) :].tolist()
        return generated


@pytest.fixture(scope="module", params=FAMILIES)
def served(request: pytest.FixtureRequest) -> Served:
    return Served(request.param)


@pytest.fixture(scope="module")
def llama() -> Served:
    return Served("llama")


@pytest.fixture
def start_llama(llama: Served) -> Iterator[Callable[..., LocalEngine]]:
    engines: list[LocalEngine] = []

    def start_engine(**settings: int) -> LocalEngine:
        engines.append(llama.engine(**settings))
        return engines[-1]

    yield start_engine
    for engine in engines:
        engine.close()


def prompt_of(length: int, *, seed: int) -> tuple[int, ...]:
    return tuple(torch.randint(0, VOCAB, (length,), generator=torch.Generator().manual_seed(seed)).tolist())


PROMPTS = [prompt_of(length, seed=length) for length in (37, 1, 5, 60, 12)]


async def complete(engine: LocalEngine, prompts: Sequence[Sequence[int]], **sampling: float) -> list[Completion]:
    """Submit all prompts at once and read them side by side."""
    streams = [
        engine.submit(request(str(number), prompt=prompt, **sampling), observer=RecordingObserver())  # type: ignore[arg-type]
        for number, prompt in enumerate(prompts)
    ]
    return [completion for _, completion in await asyncio.gather(*map(read, streams))]


@pytest.mark.parametrize(
    ("max_running", "step_tokens"),
    [
        (8, 16),
        pytest.param(8, 512, marks=pytest.mark.exhaustive),
        pytest.param(2, 7, marks=pytest.mark.exhaustive),
        pytest.param(1, 1, marks=pytest.mark.exhaustive),
    ],
)
async def test_greedy_output_equals_generate_token_for_token(
    served: Served, max_running: int, step_tokens: int
) -> None:
    engine = served.engine(max_running=max_running, step_tokens=step_tokens)

    completions = await complete(engine, PROMPTS, max_tokens=24)
    engine.close()

    assert [list(done.token_ids) for done in completions] == [served.generate(prompt, 24) for prompt in PROMPTS]
    assert {done.finish_reason for done in completions} == {FinishReason.LENGTH}
    assert len({done.token_ids for done in completions}) == len(PROMPTS), "the model says the same to everyone"
    assert served.runners[-1].cache.pool.used == 0
    served.runners[-1].cache.check_integrity()


def test_the_reference_depends_on_the_whole_prompt(served: Served) -> None:
    """Otherwise equality with it would prove little about attention."""
    prompt = list(PROMPTS[0])
    changed = [*prompt[:-8], (prompt[-8] + 1) % VOCAB, *prompt[-7:]]

    assert served.generate(prompt, 24) != served.generate(changed, 24)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_schedule_gives_the_output_of_one_request_alone(llama: Served, data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 12)), min_size=1, max_size=6))
    max_running = data.draw(st.integers(1, 4))
    step_tokens = data.draw(st.integers(max_running, 40))
    engine = llama.engine(max_running=max_running, step_tokens=step_tokens)

    async def run() -> list[Completion]:
        jobs = [
            engine.submit(
                request(
                    str(number), prompt=prompt_of(length, seed=number), max_tokens=outputs, temperature=1.0, seed=9
                ),
                observer=RecordingObserver(),
            )
            for number, (length, outputs) in enumerate(lengths)
        ]
        return [done for _, done in await asyncio.gather(*map(read, jobs))]

    together = asyncio.run(run())
    engine.close()
    alone = llama.engine(max_running=1)
    for number, (length, outputs) in enumerate(lengths):
        asked = request("x", prompt=prompt_of(length, seed=number), max_tokens=outputs, temperature=1.0, seed=9)
        _, done = asyncio.run(read(alone.submit(asked, observer=RecordingObserver())))
        assert done.token_ids == together[number].token_ids
    alone.close()


async def test_a_seed_gives_the_same_tokens_alone_and_in_a_batch(start_llama: Callable[..., LocalEngine]) -> None:
    engine = start_llama()
    asked = {"max_tokens": 30, "temperature": 0.9, "top_p": 0.95, "seed": 1234}

    [alone] = await complete(engine, PROMPTS[:1], **asked)
    together = await complete(engine, PROMPTS, **asked)
    [other_seed] = await complete(engine, PROMPTS[:1], **asked | {"seed": 1235})

    assert together[0].token_ids == alone.token_ids
    assert other_seed.token_ids != alone.token_ids


async def test_without_a_seed_two_runs_differ(start_llama: Callable[..., LocalEngine]) -> None:
    engine = start_llama()

    first, second = await complete(engine, [PROMPTS[0]] * 2, max_tokens=40, temperature=1.5)

    assert first.token_ids != second.token_ids


async def test_a_cancelled_neighbour_changes_nothing(start_llama: Callable[..., LocalEngine], llama: Served) -> None:
    engine = start_llama()
    leaver = engine.submit(request("leaver", prompt=PROMPTS[3], max_tokens=190), observer=RecordingObserver())
    stayer = engine.submit(request("stayer", prompt=PROMPTS[0], max_tokens=60), observer=RecordingObserver())

    async for _ in leaver:
        leaver.close()
        break
    _, done = await read(stayer)

    assert list(done.token_ids) == llama.generate(PROMPTS[0], 60)


async def test_the_end_of_sequence_token_counts_and_has_no_text(llama: Served) -> None:
    expected = llama.generate(PROMPTS[0], 24)
    eos = expected[6]
    engine = LocalEngine(
        ModelRunner(llama.loaded, vocab_size=VOCAB),
        llama.tokenizer,
        EngineConfig(model="tiny"),
        info=llama.loaded.info,
        eos_ids=frozenset({eos}),
        vocab_size=VOCAB,
    )

    [done] = await complete(engine, PROMPTS[:1], max_tokens=24)
    [ignored] = await complete(engine, PROMPTS[:1], max_tokens=24, ignore_eos=True)
    engine.close()

    stop = expected.index(eos) + 1
    assert (list(done.token_ids), done.finish_reason) == (expected[:stop], FinishReason.STOP)
    assert done.text == llama.tokenizer.decode(expected[: stop - 1])
    assert list(ignored.token_ids) == expected


async def test_rows_of_the_output_matrix_beyond_the_vocabulary_are_never_drawn(llama: Served) -> None:
    engine = LocalEngine(
        ModelRunner(llama.loaded, vocab_size=9),
        llama.tokenizer,
        EngineConfig(model="tiny"),
        info=llama.loaded.info,
        eos_ids=frozenset(),
        vocab_size=VOCAB,
    )

    completions = await complete(engine, PROMPTS, max_tokens=40, temperature=5.0)
    engine.close()

    assert {token for done in completions for token in done.token_ids} == set(range(9))


async def test_a_sequence_whose_logits_are_not_numbers_ends_alone() -> None:
    model: Any = tiny_model("llama", attention="eager")
    loaded = adopt_model(model, EngineConfig(model="tiny"))
    poisoned = VOCAB - 1
    with torch.no_grad():
        model.get_input_embeddings().weight[poisoned] = float("nan")
    engine = LocalEngine(
        ModelRunner(loaded, vocab_size=poisoned),
        ChatTokenizer(tiny_tokenizer()),
        EngineConfig(model="tiny"),
        info=loaded.info,
        eos_ids=frozenset(),
        vocab_size=VOCAB,
    )

    sick, well = await complete(engine, [[1, poisoned, 2], [1, 2, 3]], max_tokens=5)
    engine.close()

    assert (sick.finish_reason, sick.token_ids) == (FinishReason.ERROR, ())
    assert sick.error == "The model's output for this sequence was not a number."
    assert (well.finish_reason, len(well.token_ids)) == (FinishReason.LENGTH, 5)


def test_a_model_is_loaded_from_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "tiny-llama"
    model = tiny_model("llama", attention="eager")
    model.generation_config.eos_token_id = [3, 4]
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)

    loaded = load_model(EngineConfig(model=str(folder), device="cpu", dtype="float32", context_window=100))
    again = load_model(EngineConfig(model=str(folder), device="cpu", dtype="float32", kv_cache_bytes=512 * 50))

    assert (loaded.info.model, loaded.info.context_window, loaded.info.dtype) == ("tiny-llama", 100, "float32")
    assert loaded.eos_ids == {3, 4}
    assert loaded.info.revision == again.info.revision
    used = loaded.model.config._attn_implementation  # noqa: SLF001 - transformers only offers a setter
    assert used == IMPLEMENTATION
    assert again.info.context_window == 48  # whole blocks of 50 tokens: 2 layers * 2 * 2 heads * 16 * 4 bytes = 512
    assert ChatTokenizer.load(str(folder)).eos_ids == ChatTokenizer(tiny_tokenizer()).eos_ids


def test_rotary_scaling_that_depends_on_the_neighbours_is_kept_out_of_the_window() -> None:
    """Beyond the original length, one long sequence in a step would turn every other one's positions."""
    rope = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 64}
    rope |= {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
    config = CONFIGS["llama"]()
    config.rope_parameters = rope
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")

    assert config.max_position_embeddings == 256
    assert adopt_model(model, EngineConfig(model="long")).info.context_window == 64


@pytest.mark.parametrize("load", [lambda name: load_model(EngineConfig(model=name)), ChatTokenizer.load])
def test_a_missing_model_names_the_command_that_mends_it_and_no_path(
    tmp_path: Path, load: Callable[[str], LoadedModel | ChatTokenizer]
) -> None:
    empty = tmp_path / "not-there"
    empty.mkdir()

    with pytest.raises(ModelUnavailable, match="footnote models fetch") as caught:
        load(str(empty))

    assert str(tmp_path) not in str(caught.value)


def test_a_model_whose_attention_is_its_own_is_refused() -> None:
    bloom = AutoModelForCausalLM.from_config(BloomConfig(vocab_size=64, hidden_size=32, n_layer=1, n_head=2))

    with pytest.raises(ModelUnavailable, match="attention interface"):
        adopt_model(bloom, EngineConfig(model="bloom"))


def test_a_model_that_asks_for_more_than_our_attention_computes_is_refused() -> None:
    """The declared support is there, but sink logits in the softmax are not computed by our attention."""
    shape: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = GptOssConfig(
        **shape, num_key_value_heads=1, head_dim=16, vocab_size=64, num_local_experts=2, num_experts_per_tok=1
    )
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")

    with pytest.raises(ModelUnavailable, match="attention interface"):
        adopt_model(model, EngineConfig(model="sinks"))


def test_a_model_that_computes_something_else_through_our_attention_is_refused() -> None:
    model = tiny_model("llama", attention="eager")

    def forget_the_past(module: torch.nn.Module, args: object, kwargs: dict[str, Any]) -> tuple[object, dict[str, Any]]:
        """What a model does that leaves positions to its mask."""
        return args, kwargs | {"position_ids": torch.arange(kwargs["input_ids"].shape[1])[None]}

    model.register_forward_pre_hook(forget_the_past, with_kwargs=True)

    with pytest.raises(ModelUnavailable, match="attention interface"):
        adopt_model(model, EngineConfig(model="forgetful"))
