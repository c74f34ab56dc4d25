"""A loop that is stepped by hand over a tiny model, and what each sequence says when it is alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import torch

from generation.config import EngineConfig
from generation.constraints import TokenConstraint
from generation.counters import Counters
from generation.delivery import TokenStream
from generation.finisher import Finisher
from generation.graphs import Capture
from generation.host_memory import HostMemory
from generation.loop import EngineLoop, Speculating
from generation.memory import Layout
from generation.paged_index import Upload, upload
from generation.prefix import PrefixChain
from generation.relief import Relief, Shedding
from generation.runner import ModelRunner
from generation.sequence import SequenceState
from generation.streaming import IncrementalDecoder
from generation.tokenizer import ChatTokenizer
from generation.types import GenerationRequest, SamplingParams
from generation.weights import LoadedModel, adopt_model
from tests.generation.fakes import RecordingObserver
from tests.generation.tiny import VOCAB, tiny_model, tiny_tokenizer

torch.set_num_threads(1)

BLOCK = 4
SAMPLED: list[dict[str, Any]] = [
    {},
    {"temperature": 1.0, "seed": 3},
    {"temperature": 0.8, "top_p": 0.9, "seed": 4, "repetition_penalty": 1.2, "frequency_penalty": 0.5},
]


@dataclass(frozen=True)
class Asked:
    """A request of a made-up schedule. Prompts of one `family` begin alike."""

    family: int
    shared: int
    own: int
    outputs: int
    sampling: int
    arrives: int
    leaves: int | None
    user: str
    priority: int

    @property
    def prompt(self) -> tuple[int, ...]:
        return tokens(self.shared, seed=self.family) + tokens(self.own, seed=100 + self.own)

    @property
    def params(self) -> SamplingParams:
        return SamplingParams(max_tokens=self.outputs, ignore_eos=True, **SAMPLED[self.sampling])


def tokens(count: int, *, seed: int) -> tuple[int, ...]:
    return tuple(torch.randint(0, VOCAB, (count,), generator=torch.Generator().manual_seed(seed)).tolist())


@cache
def tokenizer() -> ChatTokenizer:
    return ChatTokenizer(tiny_tokenizer())


@cache
def loaded(capacity_blocks: int, *, family: str = "llama", device: str = "cpu") -> LoadedModel:
    """A model with room for so many blocks, if its tokens are as large as llama's."""
    config = EngineConfig(model="tiny", block_tokens=BLOCK, kv_cache_bytes=512 * BLOCK * capacity_blocks)
    return adopt_model(tiny_model(family, attention="eager").to(device), config)  # type: ignore[arg-type]


def relief_of(cache: Shedding, memory: Callable[[], HostMemory]) -> Relief:
    """A relief that looks at every turn, half a minute apart."""
    return Relief(cache, read=memory, give_back=lambda: None, clock=count(step=30).__next__)


class Stage:
    """A loop that is stepped by hand, its books checked after every step."""

    def __init__(
        self,
        *,
        capacity_blocks: int,
        max_running: int,
        step_tokens: int,
        reuse: bool,
        drafts: bool,
        layout: Layout,
        capture: Capture | None = None,
        upload: Upload = upload,
        family: str = "llama",
        device: str = "cpu",
        eos_ids: frozenset[int] = frozenset(),
        speculation: Speculating | None = None,
        memory: Callable[[], HostMemory] | None = None,
    ) -> None:
        self.runner = ModelRunner(
            loaded(capacity_blocks, family=family, device=device),
            vocab_size=VOCAB,
            eos_ids=eos_ids,
            block_tokens=BLOCK,
            prefix_cache=reuse,
            layout=layout,
            poison=True,
            capture=capture,
            upload=upload,
        )
        self.finisher = Finisher()
        self.counters = Counters(capacity=max_running)
        config = EngineConfig(model="tiny", max_running=max_running, step_tokens=step_tokens, reader_grace_s=0)
        self.loop = EngineLoop(
            self.runner,
            config,
            eos_ids=eos_ids,
            counters=self.counters,
            finisher=self.finisher,
            speculation=(speculation or Copying()) if drafts else None,
            relief=relief_of(self.runner, memory) if memory is not None else None,
        )

    def submit(self, asked: Asked) -> tuple[SequenceState, RecordingObserver]:
        return self.enter(GenerationRequest("r", asked.prompt, asked.params, user=asked.user, priority=asked.priority))

    def enter(
        self, request: GenerationRequest, *, constraint: TokenConstraint | None = None
    ) -> tuple[SequenceState, RecordingObserver]:
        chain = PrefixChain(salt="tenant", block_tokens=BLOCK)
        chain.extend(request.prompt)
        observer = RecordingObserver()
        sequence = SequenceState(
            request=request,
            seed=request.sampling.seed or 0,
            decoder=IncrementalDecoder(tokenizer().decode),
            stream=TokenStream(on_close=lambda: None, on_drained=self.finisher.wake),
            observer=observer,
            chain=chain,
            constraint=constraint,
        )
        self.loop.put(sequence, check=lambda: None)
        return sequence, observer

    def turn(self) -> None:
        self.loop.turn()
        self.loop.scheduler.check_integrity()
        self.runner.cache.check_integrity()
        blocks = self.runner.blocks()
        assert blocks.free + blocks.used + blocks.cached == self.runner.cache.pool.blocks

    @property
    def busy(self) -> bool:
        stats = self.counters.snapshot(self.runner.blocks(), preemptions=0)
        return bool(stats.waiting or stats.running)


class Copying:
    """Drafts from thin air and from what was said: some drafts are right, most are wrong."""

    def propose(self, sequences: Sequence[SequenceState], *, budget: int) -> list[list[int]]:
        drafts = []
        for sequence in sequences:
            known = solo_tokens(sequence.request.prompt, sequence.request.sampling)
            at = len(sequence.generated)
            draft = [*known[at : at + at % 4], 5][: min(budget, 4)]
            budget -= len(draft)
            drafts.append(draft)
        return drafts

    def observe(self, *, rows: int, seconds: float) -> None:
        """Nothing to learn."""


@cache
def solo_tokens(prompt: tuple[int, ...], params: SamplingParams) -> tuple[int, ...]:
    """What a sequence says alone, one token a step, its prompt read at once, nothing reused."""
    stage = Stage(capacity_blocks=32, max_running=1, step_tokens=512, reuse=False, drafts=False, layout="slabs")
    _, observer = stage.enter(GenerationRequest("solo", prompt, params))
    while stage.busy:
        stage.turn()
    stage.finisher.close()
    return observer.wait().token_ids
