"""One try at a job, from its claim to its end."""

from dataclasses import dataclass, field

from app.telemetry.stations import Work
from app.types import Document, Job
from ingestion.pipeline import Prepared


@dataclass(slots=True, eq=False)
class Attempt:
    """What a worker knows of a claimed job; filled in by the one thread that has it at the moment.

    `event_id` names its ledger row once that is reserved. Of the tokens reserved, `read_tokens` is what the
    embedder has read, `kept_tokens` the part of it that a next attempt need not read again.
    """

    job: Job
    document: Document
    prepared: Prepared | None = None
    event_id: str | None = None
    read_tokens: int = 0
    kept_tokens: int = 0
    work: Work = field(default_factory=Work)

    @property
    def passages(self) -> int:
        """How many passages there are to embed."""
        return len(self.ready.passages)

    @property
    def is_large(self) -> bool:
        """Whether it is embedded by itself, block by block."""
        return len(self.ready.blocks) > 1

    @property
    def ready(self) -> Prepared:
        """What is to be embedded."""
        assert self.prepared is not None, "it has been read"
        return self.prepared


class Stopped(Exception):
    """The process is shutting down, or another embedder takes over; the job goes back to the queue."""


class Overtaken(Exception):
    """The job was cancelled, its document deleted, or a newer version uploaded: its work is no longer wanted."""
