"""The engine over a model in this process: validates and accepts requests."""

import math
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from generation.accelerator import driver_version, engine_stream, why_no_gpu
from generation.config import EngineConfig
from generation.counters import Counters
from generation.delivery import TokenStream
from generation.errors import ConstraintInvalid, ContextLengthExceeded, EngineFull
from generation.finisher import Finisher
from generation.loop import EngineLoop
from generation.ports import Observer, Tokenizer
from generation.prefix import PrefixChain
from generation.relief import Relief
from generation.sequence import SequenceState
from generation.step import Runner
from generation.streaming import IncrementalDecoder
from generation.tokenizer import ChatTokenizer
from generation.types import CitationMarkers, Constraint, EngineStats, GenerationRequest, ModelInfo, ServingPath

if TYPE_CHECKING:
    from generation.constraints import TokenConstraint
    from generation.speculator import Speculator


class Constraints(Protocol):
    """Compiles constraints to state machines; see `generation.constraints.ConstraintCompiler`."""

    def compile(self, constraint: Constraint) -> "TokenConstraint":
        """Raises ConstraintInvalid."""
        ...


class LocalEngine:
    """A `ports.Engine` over a model in this process.

    It accepts sequences; `loop.EngineLoop` works on them in a thread of its own.
    """

    def __init__(
        self,
        runner: Runner,
        tokenizer: Tokenizer,
        config: EngineConfig,
        *,
        info: ModelInfo,
        eos_ids: frozenset[int],
        vocab_size: int,
        constraints: Constraints | None = None,
        speculation: "Speculator | None" = None,
        relief: Relief | None = None,
        path: Callable[[], ServingPath] | None = None,
        working: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Start the engine's threads; see `load` for the usual way here.

        Args:
            runner: The model.
            tokenizer: Decodes what is generated.
            config: Bounds and times.
            info: The model's name, revision and limits.
            eos_ids: Tokens that end a sequence.
            vocab_size: Token ids of a prompt are below it.
            constraints: Compiles the constraints of requests; None refuses requests that have one.
            speculation: Drafts tokens; None generates one at a time.
            relief: Gives the prompt cache back when memory is short; None never does.
            path: What computes the steps, for `stats`.
            working: The context in which the thread of the model lives.
        """
        self._runner = runner
        self._tokenizer = tokenizer
        self._config = config
        self._info = info
        self._eos_ids = eos_ids
        self._vocab_size = vocab_size
        self._constraints = constraints
        self._speculation = speculation
        self._counters = Counters(capacity=config.max_running)
        self._finisher = Finisher()
        self._loop = EngineLoop(
            runner,
            config,
            eos_ids=eos_ids,
            counters=self._counters,
            finisher=self._finisher,
            speculation=speculation,
            relief=relief,
            working=working,
        )
        self._relief = relief
        self._path = path
        self._loop.start()

    @classmethod
    def load(cls, config: EngineConfig, tokenizer: ChatTokenizer) -> "LocalEngine":
        """Load the configured model and serve it.

        Raises:
            ModelUnavailable: see `generation.weights.load_model`.
        """
        return cls.loader(config, tokenizer)()

    @classmethod
    def loader(cls, config: EngineConfig, tokenizer: ChatTokenizer) -> "Callable[[], LocalEngine]":
        """Load the configured model once; each call of the result serves it afresh, with an empty cache.

        Raises:
            ModelUnavailable: see `generation.weights.load_model` and `generation.draft_model.DraftModel.load`.
        """
        from generation.constraints import ConstraintCompiler
        from generation.draft_model import DraftModel
        from generation.graphs import CudaCapture
        from generation.runner import ModelRunner
        from generation.speculation import SpeculationPolicy
        from generation.speculator import Speculator
        from generation.weights import load_model

        loaded = load_model(config)
        eos_ids = loaded.eos_ids | tokenizer.eos_ids
        vocab_size = min(loaded.vocab_size, tokenizer.vocab_size)
        constraints = ConstraintCompiler(tokenizer, eos_ids=eos_ids, vocab_size=vocab_size)
        # Over a whole vocabulary this takes a second or two; the first answer should not wait for it.
        ready = threading.Thread(target=constraints.compile, args=(CitationMarkers(1),), name="footnote-grammar")
        ready.daemon = True
        ready.start()
        drafts = None
        if config.draft_model is not None:
            drafts = DraftModel.load(
                config.draft_model,
                serving=config.model,
                device=str(loaded.device),
                local_files_only=config.local_files_only,
            ).drafter

        unused = None
        if config.device == "auto" and driver_version() is not None:
            unused = why_no_gpu()
        # One for all engines over these weights: where graphs have failed, a restart does not try them again.
        capture = CudaCapture() if config.cuda_graphs and loaded.device.type == "cuda" else None

        def serve() -> "LocalEngine":
            runner = ModelRunner(
                loaded,
                vocab_size=vocab_size,
                eos_ids=eos_ids,
                block_tokens=config.block_tokens,
                prefix_cache=config.prefix_cache,
                capture=capture,
            )
            runner.prepare(rows=config.max_running, tokens=loaded.info.context_window)
            speculator = None
            if config.speculation:
                # A step with drafts leaves the graphs, and is launched kernel by kernel in twice the time.
                speculator = Speculator(SpeculationPolicy(), draft_model=drafts, paused=lambda: runner.replays)
            return cls(
                runner,
                tokenizer,
                config,
                info=loaded.info,
                eos_ids=eos_ids,
                vocab_size=vocab_size,
                constraints=constraints,
                speculation=speculator,
                relief=Relief(runner) if loaded.device.type == "cpu" and config.prefix_cache else None,
                path=lambda: runner.path(
                    speculation=speculator is not None and not speculator.paused(), unused_gpu=unused
                ),
                working=partial(engine_stream, loaded.device),
            )

        return serve

    @property
    def info(self) -> ModelInfo:
        """The model being served."""
        return self._info

    def submit(self, request: GenerationRequest, *, observer: Observer) -> TokenStream:
        """See `ports.Engine.submit`.

        Raises:
            ValueError: the prompt is empty, or it or the refusal holds an id the model does not have.
            ConstraintInvalid: the constraint on the output cannot be compiled.
        """
        prompt_tokens, max_tokens = len(request.prompt), request.sampling.max_tokens
        if not request.prompt or not 0 <= min(request.prompt) <= max(request.prompt) < self._vocab_size:
            raise ValueError(f"a prompt is at least one token id, each from 0 to {self._vocab_size - 1}")
        refusal = request.abstention.tokens if request.abstention is not None else ()
        if not all(0 <= token < self._vocab_size for token in refusal):
            raise ValueError(f"a refusal's token ids go from 0 to {self._vocab_size - 1}")
        if prompt_tokens + max_tokens > self._info.context_window:
            raise ContextLengthExceeded(
                prompt_tokens=prompt_tokens, max_tokens=max_tokens, context_window=self._info.context_window
            )
        check_room = partial(self._check_room, prompt_tokens)
        check_room()  # before work that would be wasted, and again when it counts
        sequence = self._sequence(request, observer)
        self._loop.put(sequence, check=check_room)
        return sequence.stream

    def cached_tokens(self, prompt: Sequence[int], *, salt: str) -> int:
        """See `ports.Engine.cached_tokens`."""
        chain = PrefixChain(salt=salt, block_tokens=self._runner.block_tokens)
        chain.extend(prompt)
        return self._runner.find(chain.keys)

    def stats(self) -> EngineStats:
        """See `ports.Engine.stats`."""
        counted = self._counters.snapshot(self._runner.blocks(), preemptions=self._loop.scheduler.preemptions)
        return replace(
            counted,
            given_back_bytes=0 if self._relief is None else self._relief.given_back,
            path=None if self._path is None else self._path(),
        )

    def alive(self) -> bool:
        """See `ports.Engine.alive`."""
        return self._loop.alive

    def close(self) -> None:
        """See `ports.Engine.close`. Idempotent; waits for the step in progress."""
        self._loop.close()
        self._finisher.close()

    def _check_room(self, prompt_tokens: int) -> None:
        waiting, tokens = self._counters.waiting, self._counters.waiting_tokens
        too_long = waiting and tokens + prompt_tokens > self._config.max_waiting_tokens
        if waiting >= self._config.max_waiting or too_long:
            rounds = self._counters.waiting / 2 / self._config.max_running  # until half of the line has moved up
            raise EngineFull(retry_after_s=min(60, max(1, math.ceil(rounds * self._counters.service_s))))

    def _sequence(self, request: GenerationRequest, observer: Observer) -> SequenceState:
        chain = PrefixChain(salt=request.salt, block_tokens=self._runner.block_tokens)
        chain.extend(request.prompt)
        seed = request.sampling.seed
        drafter, acceptance = None, None
        if self._speculation is not None and request.speculate and not self._speculation.paused():
            drafter, acceptance = self._speculation.start(request)
        return SequenceState(
            request=request,
            seed=secrets.randbits(64) if seed is None else seed,
            decoder=IncrementalDecoder(self._tokenizer.decode, stop=request.sampling.stop),
            stream=TokenStream(on_close=self._on_close, on_drained=self._finisher.wake),
            observer=observer,
            chain=chain,
            constraint=self._constraint(request),
            drafter=drafter,
            acceptance=acceptance,
        )

    def _constraint(self, request: GenerationRequest) -> "TokenConstraint | None":
        constraint, abstention = None, request.abstention
        if request.constraint is not None:
            if self._constraints is None:
                raise ConstraintInvalid("This engine cannot constrain its output.")
            constraint = self._constraints.compile(request.constraint)
        if abstention is None or abstention.threshold is None:
            return constraint
        from generation.abstention import RefusalConstraint

        return RefusalConstraint(
            abstention.tokens, otherwise=constraint, eos_ids=self._eos_ids, vocab_size=self._vocab_size
        )

    def _on_close(self) -> None:
        self._loop.wake()
        self._finisher.wake()
