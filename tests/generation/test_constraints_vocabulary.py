"""generation.vocabulary spells tokens as the decoder does."""

import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models

from generation.tokenizer import ChatTokenizer
from generation.vocabulary import token_bytes
from tests.generation.test_default_model import MODEL
from tests.generation.tiny import tiny_tokenizer


def assert_spells_like_the_decoder(tokenizer: ChatTokenizer) -> None:
    spelt = token_bytes(tokenizer.definition, size=tokenizer.vocab_size)
    for token, text in enumerate(spelt):
        assert tokenizer.decode([token]) == (text or b"").decode(errors="replace"), token


def test_every_token_of_a_byte_level_vocabulary_is_spelt_as_it_is_decoded() -> None:
    assert_spells_like_the_decoder(ChatTokenizer(tiny_tokenizer()))


def test_byte_level_pieces_are_llguidances_bytes() -> None:
    from llguidance import LLTokenizer

    tokenizer = ChatTokenizer(tiny_tokenizer())
    reference = LLTokenizer(tokenizer.definition, eos_token=sorted(tokenizer.eos_ids))
    spelt = token_bytes(tokenizer.definition, size=tokenizer.vocab_size)

    assert sum(text is not None for text in spelt) > 256
    for token, text in enumerate(spelt):
        # llguidance marks special tokens by the byte 0xFF, and takes ours, which is not marked special, for one
        if text is not None and not text.startswith((b"\xff", b"<tool_call>")):
            assert reference.decode_bytes([token]) == text


@pytest.mark.skipif(not MODEL.is_dir(), reason="the default generator is not installed here")
def test_every_token_of_the_default_vocabulary_is_spelt_as_it_is_decoded() -> None:
    assert_spells_like_the_decoder(ChatTokenizer.load(str(MODEL)))


def sentencepiece_like() -> Tokenizer:
    pieces = ["<unk>", "<s>", "▁[", "1", "]", "é", "<0x5B>", "<0x5D>", "<0xC3>", "<0xA9>", "a▁b"]
    backend = Tokenizer(models.Unigram([(piece, 0.0) for piece in pieces], unk_id=0, byte_fallback=True))
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    backend.add_special_tokens([AddedToken("<unk>", special=True), AddedToken("<s>", special=True)])
    return backend


def test_sentencepiece_spaces_and_bytes_are_understood() -> None:
    backend = sentencepiece_like()
    spelt = token_bytes(backend.to_str(), size=13, eos_ids=frozenset({5}))

    assert spelt[:6] == (None, None, b" [", b"1", b"]", None)
    assert spelt[8:] == (b"\xc3", b"\xa9", b"a b", None, None)


def test_an_ascii_byte_token_is_no_bracket_because_a_broken_neighbour_swallows_it() -> None:
    backend = sentencepiece_like()
    spelt = token_bytes(backend.to_str(), size=11)

    assert backend.decode([3, 7]) == "1]"
    assert backend.decode([3, 7, 8]) == "1��"
    assert spelt[6] == b"[\xff"
    assert spelt[7] == b"\xff"


def test_a_tokenizer_without_a_decoder_has_pieces_that_stand_for_themselves() -> None:
    definition: dict[str, object] = {"model": {"vocab": {"[": 0, "ab": 1}}, "added_tokens": [], "decoder": None}

    assert token_bytes(json.dumps(definition), size=2) == (b"[", b"ab")
