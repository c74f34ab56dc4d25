"""The application before another embedder takes over, and while it does: as fast as the tests let it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.server.state import State
from tests.app.server.embedder_swaps import GatedEmbedder, running

_LOOK_SECONDS = 0.01


@contextmanager
def before(data_dir: Path) -> Iterator[State]:
    """A state over `data_dir` with the old embedder alone."""
    with running(data_dir, _old()) as (state, _, _):
        yield state


@contextmanager
def during(data_dir: Path) -> Iterator[State]:
    """The same once the settings ask for the new one, which embeds as many blocks as `allow` says.

    They name an OpenID provider, too, whom nobody asks for anything.
    """
    pace = _Pace(_allowance(data_dir))
    provider = {"oidc_issuer": "https://provider.example", "oidc_client_id": "footnote"}
    with running(data_dir, GatedEmbedder(dim=96, before=pace.wait), _old(), **provider) as (state, _, _):
        yield state


def allow(data_dir: Path, blocks: int) -> None:
    """Let the new embedder embed so many blocks in all, of `tests.app.server.embedder_swaps.BLOCK` passages each."""
    path = _allowance(data_dir)
    written = path.with_suffix(".tmp")
    written.write_text(str(blocks))
    written.replace(path)  # whole, whenever it is looked at


class _Pace:
    """Waits until another block is allowed; the process that allows it is another."""

    def __init__(self, allowance: Path) -> None:
        self._allowance = allowance
        self._embedded = 0

    def wait(self) -> None:
        while self._embedded >= int(self._allowance.read_text()):
            time.sleep(_LOOK_SECONDS)
        self._embedded += 1


def _old() -> GatedEmbedder:
    return GatedEmbedder(dim=64)


def _allowance(data_dir: Path) -> Path:
    return data_dir.parent / "allowance"
