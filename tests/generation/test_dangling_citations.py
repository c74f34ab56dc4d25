"""No local model can write a marker of a source that was not presented: any vocabulary, any weights, any way to ask."""

import asyncio
import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.answering.generating.footnote_writer import FootnoteWriter
from generation.citation_grammar import BEGINNING, CitationGrammar, Place, Preceding, walk
from generation.config import EngineConfig
from generation.constraints import ConstraintCompiler
from generation.engine import LocalEngine
from generation.runner import ModelRunner
from generation.speculation import SpeculationPolicy
from generation.speculator import Speculator
from generation.types import Abstention, CitationMarkers, Completion, GenerationRequest, JsonSchema, SamplingParams
from generation.weights import adopt_model
from tests.generation.fakes import RecordingObserver, read
from tests.generation.stage import tokenizer
from tests.generation.test_constraints_citations import assert_no_marker_dangles, numbers
from tests.generation.tiny import tiny_model

torch.set_num_threads(1)

Family = Literal["llama", "qwen2", "gpt_neox"]


# --- any vocabulary -----------------------------------------------------------------------------

# Pieces that hold several brackets, halves of characters, digits of other scripts; None has no text.
PIECES = st.none() | st.one_of(
    st.text(alphabet="[]0123456789,; ax\n`.", min_size=1, max_size=7).map(str.encode),
    st.binary(min_size=1, max_size=4),
    st.sampled_from(["٣", "［1］", "²", "\u00a0", "\u2003"]).map(str.encode),
)


@settings(max_examples=80, deadline=None)
@given(
    pieces=st.lists(PIECES, min_size=1, max_size=60),
    spells=st.booleans(),
    sources=st.integers(0, 12),
    seed=st.integers(0, 2**32),
)
def test_over_any_vocabulary_no_walk_under_the_mask_dangles_or_gets_stuck(
    pieces: list[bytes | None], spells: bool, sources: int, seed: int
) -> None:
    alphabet = [bytes((byte,)) for byte in b"[]0123456789"] if spells else []
    vocabulary = [None, b"a", *alphabet, *pieces]
    grammar, draw = CitationGrammar(vocabulary), random.Random(seed)
    sources, place, said = grammar.sources(sources), BEGINNING, b""
    for _ in range(60):
        ids = grammar.mask(place, sources).nonzero()[:, 0].tolist()
        assert ids, f"nothing may follow {said!r}"
        marked = [token for token in ids if set(vocabulary[token] or b"") & set(b"[]0123456789")]
        token = draw.choice(marked if marked and draw.random() < 0.8 else ids)
        after = grammar.advance(place, token, sources=sources)
        assert after is not None, "the mask allows what the automaton forbids"
        place, said = after, said + (vocabulary[token] or b"")

    assert place == walk(BEGINNING, said, sources=sources)
    assert_no_marker_dangles(said.decode(errors="replace"), sources=sources)


@given(
    pieces=st.lists(PIECES, min_size=1, max_size=30),
    sources=st.integers(0, 12),
    number=st.integers(-1, 12),
    length=st.integers(1, 25),
    said=st.sampled_from(Preceding),
    ticks=st.integers(0, 2),
    code=st.booleans(),
)
def test_over_any_vocabulary_the_mask_is_what_the_automaton_says(
    pieces: list[bytes | None], sources: int, number: int, length: int, said: Preceding, ticks: int, code: bool
) -> None:
    grammar = CitationGrammar([*pieces, b"]", *(b"%d" % digit for digit in range(10))])
    for place in (Place(0, 0, said, ticks, code), Place(length, number, Preceding.WORDS)):
        mask = grammar.mask(place, sources)
        for token in range(len(mask)):
            assert bool(mask[token]) == (grammar.advance(place, token, sources=sources) is not None)


# --- any model ----------------------------------------------------------------------------------


@cache
def engine(family: Family) -> LocalEngine:
    """An engine over random weights; drafts are copied from the prompt."""
    ids = tokenizer()
    loaded = adopt_model(tiny_model(family, attention="eager"), EngineConfig(model="tiny"))
    return LocalEngine(
        ModelRunner(loaded, vocab_size=ids.vocab_size, eos_ids=ids.eos_ids),
        ids,
        EngineConfig(model="tiny"),
        info=loaded.info,
        eos_ids=ids.eos_ids,
        vocab_size=ids.vocab_size,
        constraints=ConstraintCompiler(ids, eos_ids=ids.eos_ids, vocab_size=ids.vocab_size),
        speculation=Speculator(SpeculationPolicy(loss_share=0.99)),  # drafts whether or not it pays
    )


@pytest.fixture(autouse=True, scope="module")
def engines() -> Iterator[None]:
    """Close what the tests started."""
    yield
    families: tuple[Family, ...] = ("llama", "qwen2", "gpt_neox")
    for family in families:
        engine(family).close()
    engine.cache_clear()


@cache
def leaning() -> tuple[tuple[int, float], ...]:
    """A bias that makes brackets, digits and commas far likelier than all else."""
    ids = tokenizer()
    wanted = {token for token in range(ids.vocab_size) if set("[]0123456789,") & set(ids.decode([token]))}
    return tuple((token, 12.0) for token in sorted(wanted))


def ask(family: Family, *requests: GenerationRequest) -> list[Completion]:
    """What becomes of requests that are generated together."""

    async def one(request: GenerationRequest) -> Completion:
        _, completion = await read(engine(family).submit(request, observer=RecordingObserver()))
        return completion

    async def together() -> list[Completion]:
        return await asyncio.gather(*map(one, requests))

    return asyncio.run(together())


# What a model that copies would cite: numbers of nobody, and brackets that are no markers.
BAIT = "see [99] and [13, 14] or [0][1][2]. arr[7] = [x]; [12] [12]. "


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    family=st.sampled_from(["llama", "qwen2", "gpt_neox"]),
    sources=st.integers(0, 12),
    temperature=st.sampled_from([0.0, 1.0, 3.0, 100.0]),
    seed=st.integers(0, 2**32),
    stop=st.lists(st.sampled_from(["]", "[1", "1", ".", "]]", ", "]), max_size=2, unique=True).map(tuple),
    threshold=st.none() | st.floats(1e-6, 1.0),
    max_tokens=st.integers(1, 40),
    biased=st.booleans(),
)
def test_no_random_model_writes_a_marker_that_dangles(
    family: Family,
    sources: int,
    temperature: float,
    seed: int,
    stop: tuple[str, ...],
    threshold: float | None,
    max_tokens: int,
    biased: bool,
) -> None:
    ids = tokenizer()
    sampling = SamplingParams(
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
        stop=stop,
        logit_bias=leaning() if biased else (),
        ignore_eos=True,
    )
    abstention = None if threshold is None else Abstention(tuple(ids.encode("no [")), threshold)
    prompt, start = tuple(ids.encode(BAIT * 2)), len(ids.encode(BAIT))

    def asked(*, speculate: bool, watched: Abstention | None) -> GenerationRequest:
        return GenerationRequest(
            f"{speculate} {watched}",
            prompt,
            sampling,
            constraint=CitationMarkers(sources),
            sources=((0, start),),
            speculate=speculate,
            abstention=watched,
        )

    drafted, plain, watched = ask(
        family,
        asked(speculate=True, watched=None),
        asked(speculate=False, watched=None),
        asked(speculate=True, watched=abstention),
    )

    assert drafted.token_ids == plain.token_ids
    assert drafted.text == plain.text
    for done in (drafted, watched):
        if not done.text.startswith("no ["):  # the refusal is ours: no model wrote it
            assert_no_marker_dangles(done.text, sources=sources)


def test_only_unconstrained_models_write_dangling_markers_from_a_baiting_prompt() -> None:
    ids = tokenizer()
    requests = [
        GenerationRequest(
            str(constraint),
            tuple(ids.encode(BAIT * 2)),
            SamplingParams(max_tokens=100, temperature=1.5, seed=seed, logit_bias=leaning(), ignore_eos=True),
            constraint=constraint,
        )
        for constraint in (None, CitationMarkers(3))
        for seed in range(4)
    ]
    done = ask("llama", *requests)
    free = [number for completion in done[:4] for number in numbers(completion.text)]
    kept = [number for completion in done[4:] for number in numbers(completion.text)]

    assert set(free) - {1, 2, 3}, "without the constraint these models cite what is not there"
    assert kept
    assert set(kept) <= {1, 2, 3}
    assert sum(completion.drafted_tokens for completion in done) > 0


# --- JSON and the last resort ---------------------------------------------------------------------


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sources=st.integers(1, 12), seed=st.integers(0, 2**32), speculate=st.booleans())
def test_a_json_answer_names_only_presented_sources(sources: int, seed: int, speculate: bool) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "sources": {"type": "array", "items": {"enum": list(range(1, sources + 1))}, "minItems": 1, "maxItems": 4}
        },
        "required": ["sources"],
        "additionalProperties": False,
    }
    ids = tokenizer()
    asked = GenerationRequest(
        "json",
        tuple(ids.encode('{"sources": [99, 13]} ' * 3)),
        SamplingParams(max_tokens=60, temperature=2.0, seed=seed),
        constraint=JsonSchema(json.dumps(schema)),
        speculate=speculate,
    )

    (done,) = ask("llama", asked)

    named = [int(number) for number in re.findall(r"\d+(?=[\s,\]])", done.text)]  # a number cut off says nothing
    assert all(1 <= number <= sources for number in named)


@given(
    said=st.lists(
        st.sampled_from(["[9]", "[1, 2]", "[ 13 ]", "[0]", "[", "]", "1", ",", "so", " ", "."]), max_size=12
    ).map("".join),
    cuts=st.lists(st.integers(0, 40), max_size=4).map(sorted),
)
def test_what_a_remote_model_cites_of_absent_sources_is_left_out_at_last(said: str, cuts: list[int]) -> None:
    writer = FootnoteWriter(())
    for start, stop in zip([0, *cuts], [*cuts, len(said)], strict=True):
        writer.feed(said[start:stop])
    writer.finish()

    assert numbers(writer.answer) == []
    assert writer.citations == []
