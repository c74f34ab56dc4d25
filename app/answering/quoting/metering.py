"""How the models that choose quotes are metered: each call with its tokens, and those of the documents it reads."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from app.answering.metering.meter import OnBatch
from app.answering.metering.token_usage import Purpose
from app.answering.quoting.candidates import Candidate
from app.types import DocumentShare


class Metering(Protocol):
    """Meters the call of a model that runs inside it."""

    def __call__(
        self, purpose: Purpose, model: str, revision: str, tokens: int, /, *, documents: tuple[DocumentShare, ...] = ()
    ) -> AbstractContextManager[OnBatch | None]:
        """Meter a call for `purpose` that reads `tokens`, those of `documents` among them."""
        ...


def unmetered(
    _purpose: Purpose, _model: str, _revision: str, _tokens: int, *, documents: tuple[DocumentShare, ...] = ()
) -> AbstractContextManager[None]:
    """Meters nothing, for measurements."""
    del documents
    return nullcontext()


def shares(read: Sequence[Candidate], tokens: Sequence[int]) -> tuple[DocumentShare, ...]:
    """The passages and tokens of each document, of which `read` has a candidate of each passage."""
    found: dict[str, DocumentShare] = {}
    for candidate, count in zip(read, tokens, strict=True):
        document = candidate.source.hit.chunk.document_id
        before = found.get(document, DocumentShare(document, 0, 0))
        found[document] = DocumentShare(document, before.chunks + 1, before.tokens + count)
    return tuple(found.values())
