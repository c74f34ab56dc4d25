"""The start offsets of a text's tokens, computed in one pass of the tokenizer.

Counting the tokens of a range is then a look-up instead of another run of the tokenizer. Tokens need not
add up where a text is cut (a byte-level tokenizer reads a word with its blank), so such a count plans
a passage, and the tokenizer checks the result.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator

from tokenizers import Tokenizer

_WINDOW_CHARS = 16_384  # read at once: bounds memory, and the time for one word of ten megabytes
MOST_WORD_CHARS = _WINDOW_CHARS // 4  # a window's end falls into no shorter word


class TokenStarts:
    """The characters at which the tokens of a text begin, in order; several may begin at one character."""

    def __init__(self, tokenizer: Tokenizer, text: str) -> None:
        starts = array("L")
        for first, last in windows(text, 0, len(text), _WINDOW_CHARS):
            # The batch call lets go of the interpreter, and the call for one text does not.
            (encoding,) = tokenizer.encode_batch([text[first:last]], add_special_tokens=False)
            starts.extend([first + start for start, _ in encoding.offsets])
        self._starts = starts

    def count(self, start: int, end: int) -> int:
        """How many tokens begin in `[start, end)`."""
        return self.index(end) - self.index(start)

    def index(self, char: int) -> int:
        """How many tokens begin before `char`."""
        return bisect_left(self._starts, char)

    def char(self, index: int) -> int:
        """The character at which token `index` (from 0) begins."""
        return self._starts[index]


def windows(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut `[start, end)` into pieces of at most `size` characters, each trimmed; blank ones are left out.

    A cut falls after the last paragraph, line or word that ends in the second half of a piece,
    and anywhere where none does.
    """
    while start < end:
        stop = min(end, start + size)
        if stop < end:
            for boundary in ("\n\n", "\n", " "):
                found = text.rfind(boundary, start + size // 2, stop)
                if found > start:
                    stop = found + len(boundary)
                    break
        piece = text[start:stop]
        content = piece.strip()
        if content:
            first = start + len(piece) - len(piece.lstrip())
            yield first, first + len(content)
        start = stop
