"""Notices that a text goes round in a circle: it ends with the same short piece, again and again.

Small models fall into such circles in greedy decoding (Holtzman et al., "The Curious Case of Neural Text
Degeneration", 2020), and do not leave them before their longest length. Tables, forms and lists repeat pieces too, but
fewer times in a row: a circle is a piece of at most 64 tokens, four times or more in a row, and 64 tokens in all.
"""

from collections import deque

LONGEST = 64  # tokens of a piece
TIMES = 4  # as often in a row
LEAST = 64  # tokens in all


class RepetitionDetector:
    """Takes the tokens of one text one by one, in time that does not grow with the text.

    >>> detector = RepetitionDetector()
    >>> any([detector.push(token) for token in [7, 8] * 32])
    True
    """

    def __init__(self) -> None:
        self._last: deque[object] = deque(maxlen=LONGEST)  # the latest token first
        self._runs = [0] * (LONGEST + 1)  # by period: how many of the last tokens equal the token a period before

    def push(self, token: object) -> bool:
        """Take the next token, an id or a piece of text; whether the text now ends in a circle."""
        found = False
        for period, earlier in enumerate(self._last, start=1):
            if earlier != token:
                self._runs[period] = 0
                continue
            self._runs[period] += 1
            found = found or self._runs[period] + period >= max(TIMES * period, LEAST)
        self._last.appendleft(token)
        return found
