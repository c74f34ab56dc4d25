"""Embedding stored chunks anew for a generation that lacks their vectors, block by block, each on the bill."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.db.vectors import Unembedded, VectorRepository
from app.ids import new_id
from app.types import Operation, Principal, Reservation, Role, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Embedder

TextOf: TypeAlias = Callable[[Sequence[str], str], str]
"""From a chunk's heading path and text to what the embedder reads of it, as ingestion makes it."""

BLOCK = 128
"""Chunks embedded between two commits: the most that a crash makes do again."""


@dataclass(frozen=True, slots=True)
class Target:
    """Which generation is filled, and by what."""

    generation: int
    embedder: Embedder
    text_of: TextOf


class Reembedder:
    """Fills generations from the chunks in SQL. Chunks stay as they were cut; what a shorter model cannot read is cut.

    The tokens are booked on the tenant whose chunks they are, and on no user and no key: nobody there asked for it.
    """

    def __init__(self, vectors: VectorRepository, ledger: Ledger, *, block: int = BLOCK) -> None:
        assert block > 0, "a block holds at least one chunk"
        self._vectors = vectors
        self._ledger = ledger
        self._block = block
        self._requests: dict[tuple[int, str], str] = {}

    def progress(self, generation: int) -> tuple[int, int]:
        """How many visible chunks have their vector, and how many there are."""
        return self._vectors.progress(generation)

    def fill(self, target: Target, *, before: Callable[[], None], after: Callable[[int], None]) -> int:
        """Embed what the generation lacks, in the order of the keys; how many chunks that were.

        `before` is called before each block and may raise to stop; `after` gets how many chunks a block had. What
        was stored stays, so that a stopped filling goes on where it was.

        Raises:
            StorageFull, StoreUnavailable: The block at hand was not stored.
        """
        last, filled = -1, 0
        while True:
            before()
            block = self._vectors.missing(target.generation, after=last, limit=self._block)
            if not block:
                return filled
            last = block[-1].key
            self._embed(target, block)
            filled += len(block)
            after(len(block))

    def _embed(self, target: Target, block: Sequence[Unembedded]) -> None:
        embedder = target.embedder
        texts = [target.text_of(found.heading_path, found.text) for found in block]
        status, reserved = UsageStatus.ERROR, list[str]()
        try:
            for tenant_id in sorted({found.tenant_id for found in block}):
                own = [text for text, found in zip(texts, block, strict=True) if found.tenant_id == tenant_id]
                reserved.append(self._reserve(target, tenant_id, own))
            self._vectors.store(target.generation, block, embedder.embed_documents(texts))
            status = UsageStatus.COMPLETED
        finally:
            for event_id in reserved:
                self._ledger.settle(event_id, Settlement(status=status))

    def _reserve(self, target: Target, tenant_id: str, texts: Sequence[str]) -> str:
        """Write the embedding of a tenant's texts down before it is made; the row's id."""
        embedder, request = target.embedder, (target.generation, tenant_id)
        info = embedder.info
        counted = [min(embedder.count_tokens(text), info.max_tokens) for text in texts]
        request_id = self._requests.setdefault(request, new_id("reembed"))
        event_id = f"{request_id}:{new_id('run')}"
        self._ledger.reserve(
            Reservation(
                event_id=event_id,
                request_id=request_id,
                operation=Operation.EMBED_DOC,
                principal=Principal(tenant_id, "", "", Role.ADMIN),
                endpoint="reembed",
                model=info.model,
                tokenizer_revision=info.revision,
                input_tokens=embedder.count_documents(texts, counted=counted),
            )
        )
        return event_id
