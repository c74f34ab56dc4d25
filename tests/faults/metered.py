"""The application with everything that counts: prices, budgets, sums, the engine's own counters, reconciliation."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from app.answering.question import AnswerDefaults
from app.db.presence import OwnProcess
from app.documents.passwords import Passwords
from app.server.bootstrap import build
from app.server.periodic import PeriodicThread
from app.server.state import State
from app.settings import Settings
from app.usage.ledger.ledger import Ledger
from app.usage.reconciliation.engine_counters import EngineCounters
from app.usage.reconciliation.reconciliation import LedgerReconciliation
from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.ports import Engine, Tokenizer
from generation.sequence import SequenceState
from generation.step import Sample
from generation.types import ModelInfo
from ingestion.ports import Extractor
from tests.app.evaluation.application import Unconstrained
from tests.app.server.stations import LIMITS, state_with, stations
from tests.generation.fakes import EOS, LetterTokenizer, Plan, ScriptedRunner, letters
from tests.server import ADMIN_KEY

MODEL = "scripted"
LETTERS = 200
"""Tokens of a whole answer, unless it asks for fewer; one more ends it."""


class SlowRunner(ScriptedRunner):
    """Takes a moment for each step, and finds a few tokens of every second prompt."""

    def __init__(self, step_seconds: float, says: str, wait: Callable[[], None]) -> None:
        super().__init__(says, before_step=partial(_pause, step_seconds, wait))
        self._begun = 0

    def allocate(self, sequence: SequenceState, tokens: int) -> int | None:
        super().allocate(sequence, tokens)
        self._begun += 1
        return 16 if self._begun % 2 and sequence.position > 16 else 0

    def run(self, plan: Plan, *, meanwhile: Callable[[], None]) -> list[Sample]:
        samples = super().run(plan, meanwhile=meanwhile)
        self.plans.clear()  # nobody looks at them, and there are very many
        return samples


def _pause(seconds: float, wait: Callable[[], None], plan: Plan) -> None:
    if seconds:
        time.sleep(seconds)
    wait()


def scripted(
    *,
    step_seconds: float = 0.0005,
    says: str = letters(LETTERS),
    wait: Callable[[], None] = lambda: None,
) -> LocalEngine:
    """An engine whose steps take so long and are short, so that prompts need several and are left in the middle.

    Before each step the engine's thread also calls `wait`.
    """
    return LocalEngine(
        SlowRunner(step_seconds, says, wait),
        LetterTokenizer(),
        EngineConfig(model=MODEL, step_tokens=256, max_running=8),
        info=ModelInfo(model=MODEL, revision="0", context_window=8192, device="cpu", dtype="float32"),
        eos_ids=frozenset({EOS}),
        vocab_size=0x110000,
        constraints=Unconstrained(),
    )


def metered_slowly(data_dir: Path) -> AbstractContextManager[State]:
    """As `metered`, with a model that takes 20 ms for a token: whatever is to happen meanwhile does."""
    return metered(data_dir, engine=scripted(step_seconds=0.02))


@contextmanager
def metered(
    data_dir: Path,
    *,
    engine: Engine | None = None,
    tokenizer: Tokenizer | None = None,
    limits: AnswerDefaults = LIMITS,
    watched: Callable[[Ledger], Ledger] = lambda ledger: ledger,
    passwords: Passwords | None = None,
    extractor: Extractor | None = None,
    remembers: bool = False,
    **settings_of_its_own: Any,
) -> Iterator[State]:
    """A state over `data_dir` whose worker runs; the scripted engine unless another is given, which is closed too.

    What answers writes to the ledger as `watched` returns it. The worker opens protected files with `passwords`,
    and reads files with `extractor`, in the calling process by default.
    With `remembers` answers are stored in their conversations, and the documents that they cite.
    """
    settings = Settings(data_dir=data_dir, admin_key=ADMIN_KEY, _env_file=None, **settings_of_its_own)
    with build(settings, with_models=False) as bare:
        engine = engine or scripted()
        ledger = bare.usage.ledger
        counters = EngineCounters(bare.database, engine, boot_id=ledger.boot_id, clock=ledger.seconds)
        counters.flush()
        flushing = PeriodicThread(
            counters.flush_if_changed, name="engine-counters", interval=0.5, failed="engine_counters.failed"
        )
        flushing.start()
        reconciliation = LedgerReconciliation(
            bare.database,
            OwnProcess.alone(bare.usage.ledger.boot_id),
            zone=ZoneInfo(settings.reporting_zone),
            metrics=bare.telemetry.metrics,
            counters=counters,
        )
        watching = state_with(bare, ledger=watched(bare.usage.ledger))
        models = stations(
            watching,
            engine,
            tokenizer=tokenizer,
            limits=limits,
            passwords=passwords,
            extractor=extractor,
            remembers=remembers,
        )
        bare.serving.install(models)  # deletions go by the state that the server was built with
        models.worker.start()
        try:
            yield state_with(bare, models=models, reconciliation=reconciliation)
        finally:
            models.worker.stop()
            engine.close()
            flushing.stop()
            counters.close()
