"""Options of a generation request beyond sampling: schema, deadline, log probabilities and fairness."""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from generation.config import EngineConfig
from generation.constraints import ConstraintCompiler
from generation.engine import LocalEngine
from generation.errors import ConstraintInvalid
from generation.runner import ModelRunner
from generation.speculation import SpeculationPolicy
from generation.speculator import Speculator
from generation.tokenizer import ChatTokenizer
from generation.types import CitationMarkers, Completion, Delta, FinishReason, GenerationRequest, JsonSchema
from generation.weights import LoadedModel, adopt_model
from tests.generation.fakes import RecordingObserver, ScriptedRunner, read, request, scripted_engine
from tests.generation.tiny import CONFIGS, VOCAB, tiny_model, tiny_tokenizer

torch.set_num_threads(1)


@cache
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer(tiny_tokenizer())


@cache
def loaded() -> LoadedModel:
    return adopt_model(tiny_model("llama", attention="eager"), EngineConfig(model="tiny"))


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    vocab_size, eos_ids = tokenizer().vocab_size, tokenizer().eos_ids
    made = LocalEngine(
        ModelRunner(loaded(), vocab_size=vocab_size, eos_ids=eos_ids),
        tokenizer(),
        EngineConfig(model="tiny"),
        info=loaded().info,
        eos_ids=eos_ids,
        vocab_size=vocab_size,
        constraints=ConstraintCompiler(tokenizer(), eos_ids=eos_ids, vocab_size=vocab_size),
        speculation=Speculator(SpeculationPolicy()),
    )
    yield made
    made.close()


async def ask(engine: LocalEngine, asked: GenerationRequest) -> tuple[list[Delta], Completion]:
    return await read(engine.submit(asked, observer=RecordingObserver()))


async def test_output_satisfies_its_json_schema_with_and_without_drafts(engine: LocalEngine) -> None:
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "kind": {"enum": ["a", "b"]}},
        "required": ["ok", "kind"],
        "additionalProperties": False,
    }
    asked = replace(
        request(prompt=tokenizer().encode('{"ok": true, "kind": "a"} ') * 3, max_tokens=60, temperature=1.0, seed=5),
        constraint=JsonSchema(json.dumps(schema)),
    )

    _, drafted = await ask(engine, asked)
    _, plain = await ask(engine, replace(asked, speculate=False))

    assert drafted.finish_reason is FinishReason.STOP
    assert set(json.loads(drafted.text)) == {"ok", "kind"}
    assert drafted.token_ids == plain.token_ids


async def test_no_marker_names_a_source_that_is_not_there(engine: LocalEngine) -> None:
    opening = tokenizer().encode("see [")
    params: dict[str, Any] = {"max_tokens": 40, "temperature": 3.0}
    open_bracket = {token for token in range(tokenizer().vocab_size) if "[" in tokenizer().decode([token])}
    bias = tuple((token, 100.0) for token in open_bracket)
    asked = request(prompt=opening, seed=1, **params)
    asked = replace(asked, sampling=replace(asked.sampling, logit_bias=bias), constraint=CitationMarkers(2))

    _, done = await ask(engine, asked)

    markers = [part.partition("]")[0] for part in done.text.split("[")[1:] if part[:1] in " 12"]
    assert markers, "brackets were all but forced"
    closed = markers if done.text.rstrip().endswith("]") else markers[:-1]
    assert all(number.strip() in ("1", "2") for marker in closed for number in marker.replace(";", ",").split(","))


def test_a_schema_that_cannot_be_used_is_refused_before_anything_is_counted(engine: LocalEngine) -> None:
    with pytest.raises(ConstraintInvalid):
        engine.submit(replace(request(), constraint=JsonSchema("{")), observer=RecordingObserver())

    assert engine.stats().requests == 0


async def test_log_probabilities_come_with_their_tokens_and_are_the_models_own(engine: LocalEngine) -> None:
    asked = request(prompt=range(5, 30), max_tokens=10, temperature=0.8, seed=3)
    asked = replace(asked, sampling=replace(asked.sampling, logprobs=3, repetition_penalty=1.3))

    deltas, done = await ask(engine, asked)

    assert [entry.token_id for entry in done.logprobs] == list(done.token_ids)
    assert tuple(entry for delta in deltas for entry in delta.logprobs) == done.logprobs
    model: Any = tiny_model("llama", attention="eager")
    ids = torch.tensor([[*asked.prompt, *done.token_ids]])
    with torch.inference_mode():
        expected = model(input_ids=ids).logits[0, len(asked.prompt) - 1 : -1, : tokenizer().vocab_size]
    expected = expected.float().log_softmax(-1)
    for place, entry in enumerate(done.logprobs):
        assert entry.logprob == pytest.approx(float(expected[place, entry.token_id]), abs=1e-3)
        assert [token for token, _ in entry.top] == expected[place].topk(3).indices.tolist()


@pytest.mark.parametrize("family", list(CONFIGS))
async def test_in_bfloat16_log_probabilities_stay_within_a_tenth_of_a_nat(family: str) -> None:
    model: Any = tiny_model(family, attention="eager")
    served = adopt_model(model.to(torch.bfloat16), EngineConfig(model="tiny"))
    engine = LocalEngine(
        ModelRunner(served, vocab_size=VOCAB),
        tokenizer(),
        EngineConfig(model="tiny", step_tokens=16),
        info=served.info,
        eos_ids=frozenset(),
        vocab_size=VOCAB,
    )
    asked = request(prompt=range(7, 50), max_tokens=16)
    _, done = await ask(engine, replace(asked, sampling=replace(asked.sampling, logprobs=0)))
    engine.close()

    reference: Any = tiny_model(family, attention="eager")
    reference.to(torch.bfloat16)
    with torch.inference_mode():
        logits = reference(input_ids=torch.tensor([[*asked.prompt, *done.token_ids]])).logits
    expected = logits[0, len(asked.prompt) - 1 : -1].float().log_softmax(-1)
    differences = [
        abs(entry.logprob - float(expected[place, entry.token_id])) for place, entry in enumerate(done.logprobs)
    ]
    assert max(differences) < 0.1


async def test_a_deadline_ends_a_sequence_with_what_it_has() -> None:
    engine = scripted_engine(ScriptedRunner(before_step=lambda plan: time.sleep(0.02)))
    running = engine.submit(replace(request("r", max_tokens=900), deadline_s=0.3), observer=RecordingObserver())
    deltas, done = await read(running)
    engine.close()

    assert done.finish_reason is FinishReason.DEADLINE
    assert 0 < len(done.token_ids) < 60
    assert done.text == "".join(delta.text for delta in deltas)


async def test_a_waiting_sequence_ends_at_its_deadline_without_tokens() -> None:
    engine = scripted_engine(ScriptedRunner(before_step=lambda plan: time.sleep(0.01)), max_running=1)
    first = engine.submit(request("first", max_tokens=60), observer=RecordingObserver())
    late = engine.submit(replace(request("late"), deadline_s=0.05), observer=RecordingObserver())
    (_, ended), (_, done) = await asyncio.gather(read(first), read(late))
    engine.close()

    assert (done.finish_reason, done.token_ids) == (FinishReason.DEADLINE, ())
    assert ended.finish_reason is FinishReason.LENGTH
    assert (engine.stats().waiting, engine.stats().running) == (0, 0)


async def test_another_user_does_not_wait_for_the_whole_line_of_the_first() -> None:
    engine = scripted_engine(ScriptedRunner(before_step=lambda plan: time.sleep(0.005)), max_running=1)
    order: list[str] = []

    async def note(asked: GenerationRequest) -> None:
        await read(engine.submit(asked, observer=RecordingObserver()))
        order.append(asked.user)

    many = [note(replace(request(str(n), max_tokens=20), user="ann")) for n in range(5)]
    await asyncio.gather(*many, note(replace(request("bob"), user="bob")))
    engine.close()

    assert order.index("bob") <= 1


async def test_latencies_are_counted() -> None:
    engine = scripted_engine(ScriptedRunner())
    await asyncio.gather(
        *(read(engine.submit(request(str(n), max_tokens=5), observer=RecordingObserver())) for n in (1, 2))
    )
    stats = engine.stats()
    engine.close()

    assert stats.first_token_s is not None
    assert stats.inter_token_s is not None
    assert (sum(stats.first_token_s.counts), sum(stats.inter_token_s.counts)) == (2, 8)
