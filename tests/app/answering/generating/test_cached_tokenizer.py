"""app.answering.generating.cached_tokenizer counts and encodes as its tokenizer does, with fewer calls to it."""

from app.answering.generating.cached_tokenizer import CachedTokenizer
from retrieval.memo import Memo
from tests.generation.fakes import LetterTokenizer


class CountedTokenizer(LetterTokenizer):
    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.encoded.append(text)
        return super().encode(text)


def test_a_text_is_encoded_once_and_each_caller_has_a_list_of_its_own() -> None:
    behind = CountedTokenizer()
    tokens = CachedTokenizer(behind)

    with Memo().of("t1"):
        tokens.encode("ships").append(0)
        assert tokens.encode("ships") == LetterTokenizer().encode("ships")
        assert tokens.count("ships") == 5

    assert behind.encoded == ["ships"]


def test_methods_that_are_not_cached_are_delegated_to_the_tokenizer() -> None:
    tokens, behind = CachedTokenizer(LetterTokenizer()), LetterTokenizer()

    assert tokens.decode([115, 104]) == behind.decode([115, 104])
    assert tokens.piece(115) == behind.piece(115) == b"s"
    assert tokens.chat_frame(["user"]) == behind.chat_frame(["user"])
