"""A probe over a scripted engine."""

from collections.abc import Callable, Iterator
from pathlib import Path

from app.answering.generating.model_class import ModelClass
from app.answering.metering.meter import Meters
from app.probing.asking import CaseAsking
from app.probing.cases import ProbeCase, cases
from app.probing.probe import ModelProbe
from app.probing.results import ProbeResults
from app.usage.ledger.ledger import Ledger
from generation.errors import EngineFull
from generation.ports import Observer
from generation.types import FinishReason, GenerationRequest, ModelInfo
from tests.app.answering.generating.test_summaries import FinishedStream
from tests.app.answering.idle_engine import IdleEngine
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.app.probing.test_cases import reply_to

KEY = "0123"


def right(case: ProbeCase) -> str:
    return reply_to(case) if case.answer else "I don't know."


class ReadingEngine(IdleEngine):
    """Implements `Engine`: replies to each case as `says` does, after it was `busy` so many times."""

    def __init__(self, says: Callable[[ProbeCase], str] = right, *, busy: Iterator[bool] | None = None) -> None:
        self.info = ModelInfo(model="scripted", revision="0", context_window=9000, device="cpu", dtype="float32")
        self._says, self._busy = says, busy or iter(())
        self.reason = FinishReason.STOP
        self.requests: list[GenerationRequest] = []

    def submit(self, request: GenerationRequest, *, observer: Observer) -> FinishedStream:
        if next(self._busy, False):
            raise EngineFull(retry_after_s=1)
        self.requests.append(request)
        prompt = CharacterTokenizer().decode(request.prompt)
        [case] = [one for one in cases() if one.question in prompt]
        return FinishedStream(request, self._says(case), self.reason, observer)


def probe_of(
    engine: ReadingEngine, ledger: Ledger, folder: Path, *, known: ModelClass | None = None, key: str = KEY
) -> ModelProbe:
    """A probe whose results are kept in `folder`; its clock stands at 7."""
    meters = Meters(ledger=ledger, engine=engine, tokenizer_revision="0")
    return ModelProbe(
        CaseAsking(tokenizer=CharacterTokenizer(), meters=meters),
        model="scripted",
        known=known,
        results=ProbeResults(folder),
        key=key,
        clock=lambda: 7.0,
    )
