"""generation.relief: the prompt cache is given back while memory is short, and kept again after."""

from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.host_memory import HostMemory
from generation.relief import Relief
from generation.types import GenerationRequest, SamplingParams
from tests.generation.fakes import RecordingObserver, wait_until
from tests.generation.stage import BLOCK, Stage, loaded, tokenizer, tokens
from tests.generation.tiny import VOCAB

PLENTY, SHORT = HostMemory(total=1000, available=500), HostMemory(total=1000, available=99)
PROMPT = tokens(4 * BLOCK, seed=1)


class Times:
    """A clock that is set, a memory that is told, and what was done."""

    def __init__(self) -> None:
        self.now, self.memory = 0.0, PLENTY
        self.cached, self.looks, self.trims = 1000, 0, 0

    def read(self) -> HostMemory:
        self.looks += 1
        return self.memory

    def shed(self, share: float) -> int:
        freed = int(self.cached * share)
        self.cached -= freed
        return freed

    def trim(self) -> None:
        self.trims += 1

    def relief(self) -> Relief:
        return Relief(self, read=self.read, give_back=self.trim, clock=lambda: self.now)


def look(times: Times, relief: Relief, *, at: float) -> None:
    times.now = at
    relief.look()


def test_the_memory_is_read_once_a_second():
    times = Times()
    relief = times.relief()

    for tenth in range(1, 31):
        look(times, relief, at=tenth / 10)

    assert times.looks == 3
    assert (times.cached, times.trims, relief.keeps) == (1000, 0, True)


def test_half_is_given_back_at_each_look_until_memory_suffices():
    times = Times()
    relief, times.memory = times.relief(), SHORT

    for second in (1, 2, 3):
        look(times, relief, at=second)

    assert (times.cached, relief.given_back, times.trims, relief.keeps) == (125, 875, 3, False)


def test_nothing_is_kept_for_half_a_minute_after():
    times = Times()
    relief, times.memory = times.relief(), SHORT
    look(times, relief, at=1)
    times.memory = PLENTY

    look(times, relief, at=30.5)
    assert not relief.keeps
    look(times, relief, at=31.5)
    assert relief.keeps


def test_an_idle_engine_gives_its_cache_back_and_keeps_nothing_while_memory_is_short():
    times = Times()
    stage = Stage(capacity_blocks=32, max_running=1, step_tokens=64, reuse=True, drafts=False, layout="slabs")
    engine = LocalEngine(
        stage.runner,
        tokenizer(),
        EngineConfig(model="tiny"),
        info=loaded(32).info,
        eos_ids=frozenset(),
        vocab_size=VOCAB,
        relief=Relief(stage.runner, read=times.read, give_back=times.trim),
    )
    try:
        ask(engine)
        kept = engine.stats().cached_blocks
        assert kept >= 4
        times.memory = SHORT
        given_back = kept * engine.stats().block_bytes  # counted a moment after the blocks are gone
        wait_until(lambda: engine.stats().given_back_bytes == given_back)
        assert engine.stats().cached_blocks == 0
        ask(engine)
        assert engine.stats().cached_blocks == 0
    finally:
        engine.close()


def ask(engine: LocalEngine) -> None:
    observer = RecordingObserver()
    engine.submit(GenerationRequest("r", PROMPT, SamplingParams(max_tokens=2, ignore_eos=True)), observer=observer)
    observer.wait()
