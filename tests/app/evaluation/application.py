"""The application with a hashing embedder, a scripted model and an extractor in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from generation.config import EngineConfig
from generation.constraints import TokenConstraint
from generation.engine import LocalEngine
from generation.types import Constraint, ModelInfo
from tests.app.server.stations import state_with, stations
from tests.generation.fakes import EOS, LetterTokenizer, ScriptedRunner


class Anything:
    """Implements `TokenConstraint`: every token may come next."""

    def mask(self) -> None:
        return None

    def allows(self, token_id: int) -> bool:
        return True

    def advance(self, token_id: int) -> None:
        """Nothing is remembered."""

    def clone(self) -> "Anything":
        return self


class Unconstrained:
    """Implements `Constraints`: the scripted model writes what it writes."""

    def compile(self, constraint: Constraint) -> TokenConstraint:
        return Anything()


SAYS = "The keeper counted forty ships [1]."


@contextmanager
def application(data_dir: Path, **values: Any) -> Iterator[State]:
    """A state over `data_dir` whose worker runs and whose model says `SAYS` to everything; `values` are settings."""
    settings = Settings(data_dir=data_dir, admin_key="fn_test_admin_key_of_the_suite", _env_file=None, **values)
    engine = LocalEngine(
        ScriptedRunner(SAYS),
        LetterTokenizer(),
        EngineConfig(model="scripted", step_tokens=10_000),
        info=ModelInfo(model="scripted", revision="0", context_window=20_000, device="cpu", dtype="float32"),
        eos_ids=frozenset({EOS}),
        vocab_size=0x110000,
        constraints=Unconstrained(),
    )
    with build(settings, with_models=False) as bare:
        models = stations(bare, engine)
        models.worker.start()
        try:
            yield state_with(bare, models=models)
        finally:
            models.worker.stop()
            engine.close()
