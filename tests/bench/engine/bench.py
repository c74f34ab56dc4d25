"""What the sections of the engine's benchmark share: the model, its peer, the machine's limits, the usual sizes."""

from typing import Any

from generation.tokenizer import ChatTokenizer
from tests.bench.engine.step_times import TimedFootnote
from tests.bench.machine import description, limits
from tests.bench.subjects import Footnote, Generate

CONTEXT, NEW, ROUNDS = 1536, 48, 3


class Bench:
    """What the sections share."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.tokenizer = ChatTokenizer.load(folder)
        self.peer = Generate(folder)
        self.weight_bytes = 4 * sum(parameter.numel() for parameter in self.peer.model.parameters())
        self.machine = description() | limits(self.weight_bytes)

    def engine(self, **settings: Any) -> Footnote:
        """An engine over the default model."""
        return Footnote(self.folder, self.tokenizer, **settings)

    def timed_engine(self, **settings: Any) -> TimedFootnote:
        """As `engine`, with its steps timed."""
        return TimedFootnote(self.folder, self.tokenizer, **settings)

    def bandwidth_share(self, tokens_per_s: float) -> float:
        """Share of the read bandwidth that decoding at this rate would need in float32, weights alone."""
        share: float = tokens_per_s * self.weight_bytes / 1e9 / self.machine["read_gb_s"]
        return round(share, 3)
