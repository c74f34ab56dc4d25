"""generation.byte_tokenizer: every text and every conversation is read back as it was written."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.byte_tokenizer import ByteTokenizer

TOKENIZER = ByteTokenizer()
Role = Literal["system", "user", "assistant"]

texts = st.text(st.characters(codec="utf-8"))


@given(texts)
def test_a_text_is_read_back_and_counted_by_its_bytes(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert b"".join(map(TOKENIZER.piece, ids)) == text.encode()
    assert TOKENIZER.count(text) == len(ids) == -(-len(text.encode()) // 3)
    assert len(set(ids)) == len({TOKENIZER.piece(one) for one in ids})


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.lists(texts)), min_size=1))
def test_messages_are_read_back_whatever_pieces_they_were_encoded_in(said: list[tuple[Role, list[str]]]) -> None:
    frame = TOKENIZER.chat_frame([role for role, _ in said])
    prompt = [*frame[0]]
    for (_, pieces), after in zip(said, frame[1:], strict=True):
        prompt += [token for piece in pieces for token in TOKENIZER.encode(piece)]
        prompt += after

    assert TOKENIZER.messages(prompt) == [{"role": role, "content": "".join(pieces)} for role, pieces in said]
    assert TOKENIZER.decode(prompt) == "".join("".join(pieces) for _, pieces in said)


def test_what_unicode_cannot_write_is_replaced() -> None:
    assert TOKENIZER.decode(TOKENIZER.encode("a\ud83d")) == "a?"
    assert TOKENIZER.count("a\ud83d") == 1
    assert TOKENIZER.decode(TOKENIZER.encode("é")[:1]) == "é"
    assert TOKENIZER.decode(TOKENIZER.encode("aaé")[:1]) == "aa\ufffd"


@pytest.mark.parametrize("prompt", [[], [5], TOKENIZER.encode("text"), [*TOKENIZER.chat_frame([])[0], 5]])
def test_a_prompt_without_a_frame_has_no_messages(prompt: list[int]) -> None:
    with pytest.raises(ValueError, match="begins with a role"):
        TOKENIZER.messages(prompt)
