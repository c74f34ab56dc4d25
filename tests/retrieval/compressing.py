"""A token counter by words, and the texts of a compressed context."""

from retrieval.types import Context


def count_words(text: str) -> int:
    return len(text.split())


def shown(context: Context) -> list[str]:
    return [source.body.removesuffix("\n") for source in context.sources]
