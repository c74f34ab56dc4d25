"""A tokenizer for servers whose own is not known: a token stands for three bytes of UTF-8, or for a role.

Three bytes a token is more than English needs and about what Chinese needs, so a prompt that fits by this count fits
the server's window as a rule.
"""

from collections.abc import Sequence
from itertools import pairwise

_GROUP = 3  # bytes
_FIRST = (0, 1 << 8, (1 << 8) + (1 << 16))
"""The first id of groups of one, two and three bytes."""
_ROLES = ("system", "user", "assistant")
_FIRST_ROLE = _FIRST[2] + (1 << 24)


class ByteTokenizer:
    """Implements `ports.Tokenizer`; prompts of its ids can be read back as `messages`, exactly.

    >>> tokenizer.decode(tokenizer.encode("Grüße"))
    'Grüße'
    """

    revision = "bytes/1"

    def encode(self, text: str) -> list[int]:
        """Ids of a text; half a character, which UTF-8 lacks, becomes a question mark."""
        data = text.encode("utf-8", errors="replace")
        groups = (data[at : at + _GROUP] for at in range(0, len(data), _GROUP))
        return [_FIRST[len(group) - 1] + int.from_bytes(group, "big") for group in groups]

    def count(self, text: str) -> int:
        """A third of its bytes, rounded up."""
        return -(-len(text.encode("utf-8", errors="replace")) // _GROUP)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, roles left out; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(map(self.piece, ids)).decode("utf-8", errors="replace")

    def piece(self, token_id: int) -> bytes:
        """The bytes of an id; none of a role."""
        if token_id >= _FIRST_ROLE:
            return b""
        size = sum(token_id >= first for first in _FIRST)
        return (token_id - _FIRST[size - 1]).to_bytes(size, "big")

    def chat_frame(self, roles: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """An id for each role, and that of the assistant at the end."""
        return tuple((_FIRST_ROLE + _ROLES.index(role),) for role in (*roles, "assistant"))

    def messages(self, prompt: Sequence[int]) -> list[dict[str, str]]:
        """The messages of a prompt that was laid out with `chat_frame`, without the assistant's turn at its end.

        Raises:
            ValueError: It does not begin with a role, or does not end with the assistant's.
        """
        starts = [at for at, token in enumerate(prompt) if token >= _FIRST_ROLE]
        if not starts or starts[0] != 0 or starts[-1] != len(prompt) - 1:
            raise ValueError("a chat prompt begins with a role, and ends with the assistant's")
        return [
            {"role": _ROLES[prompt[start] - _FIRST_ROLE], "content": self.decode(prompt[start + 1 : end])}
            for start, end in pairwise(starts)
        ]
