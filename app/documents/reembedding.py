"""Embeds stored chunks for a generation that lacks their vectors, block by block, each block billed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.db.vectors import Unembedded, VectorRepository
from app.ids import new_id
from app.types import Operation, Principal, Reservation, Role, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from retrieval.ports import Embedder

TextOf: TypeAlias = Callable[[Sequence[str], str, str], str]
"""From a chunk's heading path, text and table header to the text that is embedded, as in ingestion."""

BLOCK = 128
"""Chunks embedded between two commits: the most work that a crash repeats."""


@dataclass(frozen=True, slots=True)
class Target:
    """The generation to fill, and the embedder that fills it."""

    generation: int
    embedder: Embedder
    text_of: TextOf


class Reembedder:
    """Fills generations with vectors of the chunks in SQL. Chunks keep their bounds; too long texts are cut.

    The tokens are billed to the tenant of the chunks, without a user or key, since no user requested them.

    Example:
        >>> Reembedder(vectors, ledger).fill(target, before=check_stopped, after=progress.add)
    """

    def __init__(self, vectors: VectorRepository, ledger: Ledger, *, block: int = BLOCK) -> None:
        assert block > 0, "a block holds at least one chunk"
        self._vectors = vectors
        self._ledger = ledger
        self._block = block
        self._requests: dict[tuple[int, str], str] = {}

    def progress(self, generation: int) -> tuple[int, int]:
        """The number of visible chunks that have a vector in `generation`, and of all visible chunks."""
        return self._vectors.progress(generation)

    def fill(self, target: Target, *, before: Callable[[], None], after: Callable[[int], None]) -> int:
        """Embed the chunks without a vector, in the order of their keys; returns their number.

        Stored blocks stay, so that a later call continues after them.

        Args:
            target: The generation and its embedder.
            before: Called before each block; may raise to stop.
            after: Called after each block with its number of chunks.

        Raises:
            StorageFull, StoreUnavailable: The current block was not stored.
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
        texts = [target.text_of(found.heading_path, found.text, found.table_header) for found in block]
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
        """Reserve the tokens of a tenant's texts in the ledger; returns the id of the row."""
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
