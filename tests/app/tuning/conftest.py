"""The tiny embedder and the single thread that tests of training use."""

from tests.retrieval.conftest import one_thread, tiny, tiny_folder

__all__ = ["one_thread", "tiny", "tiny_folder"]
