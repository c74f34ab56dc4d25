"""Stand-ins that implement generation's ports: a scripted model, a letter tokenizer, a recording observer."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from generation.config import EngineConfig
from generation.delivery import TokenStream
from generation.engine import LocalEngine
from generation.prefix import BlockKey
from generation.scheduler import ScheduledTokens
from generation.sequence import SequenceState
from generation.step import BlockCounts, Sample
from generation.types import Completion, Delta, FinishReason, GenerationRequest, ModelInfo, SamplingParams

EOS = 0
_PATIENCE_S = 30  # enough for a machine with twice as many workers as cores
Plan = Sequence[ScheduledTokens[SequenceState]]


class LetterTokenizer:
    """Id n is the n-th code point; id 0 ends a sequence and has no text."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def count(self, text: str) -> int:
        return len(text)

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(chr(token) for token in ids if token != EOS)

    def piece(self, token_id: int) -> bytes:
        return b"" if token_id == EOS else chr(token_id).encode()

    def chat_frame(self, roles: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        return ((),) * (len(roles) + 1)


def letters(count: int) -> str:
    """So many letters that do not go round in a circle: ten of the alphabet, then ten from the next one on."""
    return "".join(chr(ord("a") + (at + at // 10) % 26) for at in range(count))


class ScriptedRunner:
    """A model that says a fixed text, whatever it is asked, one letter a step.

    `before_step` runs on the engine thread before each step; it may wait or raise.
    """

    def __init__(
        self,
        says: str = "abcdefghij" * 100,
        *,
        before_step: Callable[[Sequence[ScheduledTokens[SequenceState]]], None] = lambda plan: None,
        on_allocate: Callable[[SequenceState], None] = lambda sequence: None,
        on_release: Callable[[SequenceState], None] = lambda sequence: None,
        capacity_tokens: int = 1 << 30,
        overlaps: bool = False,
    ) -> None:
        self.overlaps = overlaps
        self._says = says
        self._before_step = before_step
        self._on_allocate = on_allocate
        self._on_release = on_release
        self._capacity = capacity_tokens
        self.held: list[SequenceState] = []
        self.plans: list[dict[str, int]] = []

    @property
    def block_tokens(self) -> int:
        return 16

    def match(self, sequence: SequenceState) -> int:
        return 0

    def find(self, keys: Sequence[BlockKey]) -> int:
        return 0

    def allocate(self, sequence: SequenceState, tokens: int) -> int | None:
        if self._capacity < sum(held.position + 1 for held in self.held) + tokens:
            return None
        self._on_allocate(sequence)
        self.held.append(sequence)
        return 0

    def grow(self, sequence: SequenceState, tokens: int) -> bool:
        return True

    def deallocate(self, sequence: SequenceState) -> None:
        self._on_release(sequence)
        self.held = [held for held in self.held if held is not sequence]

    def offer(self, sequence: SequenceState) -> None:
        """Nothing is kept."""

    def distrust(self, sequence: SequenceState) -> None:
        """Nothing was kept."""

    def shed(self, share: float) -> int:
        return 0

    def blocks(self) -> BlockCounts:
        return BlockCounts(free=0, used=0, cached=0, block_tokens=self.block_tokens)

    def run(self, plan: Plan, *, meanwhile: Callable[[], None]) -> list[Sample]:
        self._before_step(plan)
        if self.overlaps:
            meanwhile()
        self.plans.append({work.sequence.request.id: work.tokens for work in plan})
        samples = []
        for work in plan:
            if work.sampled:
                token = self.next_token(len(work.sequence.generated))
                samples.append(
                    Sample(work.sequence, () if token is None else (token,), () if token is None else (None,))
                )
        return samples

    def next_token(self, index: int) -> int | None:
        return ord(self._says[index]) if index < len(self._says) else EOS


class RecordingObserver:
    """Writes down what it is told, and in which order."""

    def __init__(self, *, raises: bool = False) -> None:
        self.checkpoints: list[int] = []
        self.completions: list[Completion] = []
        self.finished = threading.Event()
        self._raises = raises

    def checkpoint(self, request_id: str, generated_tokens: int) -> None:
        self.checkpoints.append(generated_tokens)
        if self._raises:
            raise RuntimeError("the ledger is on fire")

    def finish(self, completion: Completion) -> None:
        self.completions.append(completion)
        self.finished.set()
        if self._raises:
            raise RuntimeError("the ledger is on fire")

    def wait(self) -> Completion:
        """The one completion."""
        assert self.finished.wait(30), "the observer was never told"
        assert len(self.completions) == 1
        return self.completions[0]


def scripted_engine(
    runner: ScriptedRunner,
    *,
    max_running: int = 8,
    max_waiting: int = 64,
    max_waiting_tokens: int = 131_072,
    step_tokens: int = 512,
    context_window: int = 4096,
    reader_grace_s: float = 30.0,
) -> LocalEngine:
    """An engine over a scripted model. The grace is long: a test that needs it short says so."""
    config = EngineConfig(
        model="scripted",
        max_running=max_running,
        max_waiting=max_waiting,
        max_waiting_tokens=max_waiting_tokens,
        step_tokens=step_tokens,
        reader_grace_s=reader_grace_s,
    )
    info = ModelInfo(model="scripted", revision="0", context_window=context_window, device="cpu", dtype="float32")
    return LocalEngine(
        runner,
        LetterTokenizer(),
        config,
        info=info,
        eos_ids=frozenset({EOS}),
        vocab_size=0x110000,
    )


def request(
    name: str = "r",
    *,
    prompt: Iterable[int] = (1, 2, 3),
    max_tokens: int = 8,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int | None = None,
    stop: tuple[str, ...] = (),
    ignore_eos: bool = False,
    stop_repetition: bool = False,
) -> GenerationRequest:
    """A request with everything but what matters to the test left at its default."""
    sampling = SamplingParams(
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        stop=stop,
        ignore_eos=ignore_eos,
        stop_repetition=stop_repetition,
    )
    return GenerationRequest(name, tuple(prompt), sampling)


async def read(stream: TokenStream) -> tuple[list[Delta], Completion]:
    """All deltas and the completion, having checked that it comes once and last."""
    items = [item async for item in stream]
    assert [type(item) for item in items] == [Delta] * (len(items) - 1) + [Completion]
    deltas = [item for item in items if isinstance(item, Delta)]
    completion = items[-1]
    assert isinstance(completion, Completion)
    if completion.finish_reason is not FinishReason.CANCELLED:
        assert "".join(delta.text for delta in deltas) == completion.text
        assert sum(delta.tokens for delta in deltas) == len(completion.token_ids)
    return deltas, completion


class Gate:
    """Holds the engine thread before a step until the test lets it through."""

    def __init__(self) -> None:
        self._open = threading.Semaphore(0)
        self.reached = threading.Semaphore(0)
        self._free = False

    def __call__(self, plan: Plan) -> None:
        if not self._free:
            self.reached.release()
            assert self._open.acquire(timeout=_PATIENCE_S), "the test let no step through"

    def step(self, count: int = 1) -> None:
        """Let `count` steps happen; each must be on its way."""
        for _ in range(count):
            assert self.reached.acquire(timeout=_PATIENCE_S), "no step came"
            self._open.release()

    def free(self) -> None:
        """Hold nothing any more."""
        self._free = True
        self._open.release(1000)


def names(plan: Plan) -> set[str]:
    return {work.sequence.request.id for work in plan}


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.002)
