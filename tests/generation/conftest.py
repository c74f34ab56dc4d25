"""What the engine's tests share."""

from collections.abc import Callable, Iterator

import pytest

from generation.engine import LocalEngine
from tests.generation.fakes import ScriptedRunner, scripted_engine


@pytest.fixture
def start() -> Iterator[Callable[..., LocalEngine]]:
    """Make engines that are closed after the test."""
    engines: list[LocalEngine] = []

    def start_engine(runner: ScriptedRunner, **settings: float) -> LocalEngine:
        engines.append(scripted_engine(runner, **settings))  # type: ignore[arg-type]
        return engines[-1]

    yield start_engine
    for engine in engines:
        engine.close()
