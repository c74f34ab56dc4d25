"""Finds the values of a JSON answer that no source states: numbers, dates and names that are in none of them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from app.answering.languages.details import lacks_detail
from app.answering.languages.statement import Statement, parse_statement
from retrieval.types import Source

Leaf: TypeAlias = str | int | float
_PER_CENT = 100
_LARGEST = 10**300


def unsupported_leaves(text: str, sources: Sequence[Source], *, schema: str) -> tuple[str, ...]:
    """The JSON pointers (RFC 6901) of the strings and numbers in a document with a detail that no source states.

    A string must have its numbers, months and names in the sources, taken together; a number must be in them, with
    its scale ("48 million" states 48000000) or as a percentage ("12 %" states 12 and 0.12). Values that the schema
    names, as those of an `enum`, are a choice and state nothing.

    Args:
        text: The document. Text that is no whole JSON document, or too deep, has no leaves.
        sources: The sources that were presented.
        schema: The JSON Schema of the document, as text.
    """
    try:
        document = json.loads(text)
        chosen = set(_constants(json.loads(schema)))
        leaves = list(_leaves(document))
    except (ValueError, RecursionError):
        return ()
    evidence = parse_statement("\n".join(source.body for source in sources))
    above = " ".join(part for source in sources for part in (*source.hit.chunk.heading_path, source.hit.chunk.filename))
    around = frozenset(parse_statement(above).words)
    return tuple(
        pointer for pointer, leaf in leaves if leaf not in chosen and not _stated(leaf, evidence, around=around)
    )


def _stated(leaf: Leaf, evidence: Statement, *, around: frozenset[str]) -> bool:
    """Whether the sources state a value."""
    if isinstance(leaf, str):
        return not lacks_detail(parse_statement(leaf, fragment=True), evidence, around=around)
    size = abs(leaf)  # a document writes a negative number with a sign or in brackets
    if not size <= _LARGEST:  # "1e999" is JSON, and Python writes no integer of thousands of digits
        return False
    written = (size, size * _PER_CENT) if evidence.percent else (size,)
    return any(not lacks_detail(parse_statement(_digits(one)), evidence, around=around) for one in written)


def _digits(number: float) -> str:
    """A number without exponent, with at most twelve places after the point."""
    return str(number) if isinstance(number, int) else f"{number:.12f}".rstrip("0").rstrip(".")


def _leaves(value: object, pointer: str = "") -> Iterator[tuple[str, Leaf]]:
    """The strings and numbers of a document, each with its pointer."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _leaves(one, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from _leaves(one, f"{pointer}/{at}")
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield pointer, value


def _constants(schema: object) -> Iterator[Leaf]:
    """The values that a schema names."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "enum" and isinstance(value, list):
                yield from (one for one in value if isinstance(one, str | int | float))
            elif key == "const" and isinstance(value, str | int | float):
                yield value
            else:
                yield from _constants(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from _constants(one)
