"""The bytes that each token id adds to the decoded text."""

import json
from typing import Any

_OPENING = ord("[")


def token_bytes(definition: str, *, size: int, eos_ids: frozenset[int] = frozenset()) -> tuple[bytes | None, ...]:
    """The bytes of every token of a tokenizer, by id; None for ids without text of their own.

    Special tokens, `eos_ids` and ids that no token has are without text. Byte-level pieces
    (GPT-2, Radford et al. 2019) and SentencePiece's with byte fallback are understood; pieces of
    other tokenizers stand for themselves.

    Args:
        definition: The tokenizer as `tokenizer.json`.
        size: How many ids there are.
        eos_ids: Ids that end a sequence, special or not.
    """
    parsed = json.loads(definition)
    vocabulary = parsed["model"]["vocab"]
    if isinstance(vocabulary, list):  # Unigram: pieces with their scores
        vocabulary = {piece: token for token, (piece, _) in enumerate(vocabulary)}
    added = parsed["added_tokens"]
    pieces: dict[int, str] = {token: piece for piece, token in vocabulary.items()}
    pieces |= {token["id"]: token["content"] for token in added}
    silent = eos_ids | {token["id"] for token in added if token["special"]}

    decoders = _decoders(parsed["decoder"])
    byte_level = {letter: byte for byte, letter in enumerate(_byte_letters())} if "ByteLevel" in decoders else None
    byte_fallback = "ByteFallback" in decoders

    def spell(token: int) -> bytes | None:
        if token in silent or not pieces.get(token):
            return None
        piece = pieces[token]
        if byte_level is not None:
            # As the decoder does: a piece with a letter from outside the alphabet (an added token) stands for itself.
            known = all(letter in byte_level for letter in piece)
            return bytes(byte_level[letter] for letter in piece) if known else piece.encode()
        if byte_fallback and len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
            return _fallback_byte(int(piece[3:5], 16))
        return piece.replace("▁", " ").encode()

    return tuple(spell(token) for token in range(size))


def _fallback_byte(byte: int) -> bytes:
    """The byte, or for ASCII one that no marker has: next to a broken character it is decoded as U+FFFD."""
    if byte >= 0x80:
        return bytes((byte,))
    return b"[\xff" if byte == _OPENING else b"\xff"


def _decoders(decoder: dict[str, Any] | None) -> set[str]:
    if decoder is None:
        return set()
    return {str(decoder["type"])}.union(*(_decoders(inner) for inner in decoder.get("decoders", ())))


def _byte_letters() -> list[str]:
    """GPT-2's letter for each byte: printable Latin-1 as itself, the rest from U+0100 on, in order."""
    letters, spare = [], 0x100
    for byte in range(256):
        printable = 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or 0xAE <= byte <= 0xFF
        letters.append(chr(byte if printable else spare))
        spare += not printable
    return letters
