"""Decodes a stream of token ids to text without broken characters or parts of a stop string."""

from collections.abc import Callable, Sequence

# Tokens that may wait for the rest of a character. A code point has at most 4 bytes; a longer wait is
# a model babbling invalid bytes, and an unbounded window would make decoding quadratic.
_LONGEST_WAIT = 64
_REPLACEMENT = "\ufffd"


class IncrementalDecoder:
    """Text deltas of a growing sequence of token ids.

    A window of the last emitted tokens is decoded again with the new ones, and what the window gained
    is the delta (the prefix-offset method of Text Generation Inference and vLLM): a tokenizer may
    strip or merge at the start of what it decodes. Text that ends inside a UTF-8 character waits.

    The joined deltas, with `flush`, are `decode(ids)` cut before the stop string that is complete
    first, reading character by character.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], *, stop: Sequence[str] = ()) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._window_start = 0
        self._window_read = 0  # ids before this one have been turned into text
        self._stop = StopStrings(stop)

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found; nothing more comes."""
        return self._stop.found

    def push(self, token_id: int) -> str:
        """The text that is certain now that `token_id` came, possibly none."""
        assert not self.stopped, "a token after the stop string"
        self._ids.append(token_id)
        before, now = self._window()
        incomplete = now.endswith(_REPLACEMENT) and len(self._ids) - self._window_read < _LONGEST_WAIT
        if incomplete or len(now) <= len(before):
            return ""
        self._window_start, self._window_read = self._window_read, len(self._ids)
        return self._stop.push(now[len(before) :])

    def flush(self) -> str:
        """The text still held back when the sequence has ended."""
        if self.stopped:
            return ""
        before, now = self._window()
        self._window_start = self._window_read = len(self._ids)
        return self._stop.push(now[len(before) :]) + self._stop.flush()

    def _window(self) -> tuple[str, str]:
        before = self._decode(self._ids[self._window_start : self._window_read])
        return before, self._decode(self._ids[self._window_start :])


class StopStrings:
    """Passes text through until a stop string is complete, and never any part of that stop string."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = tuple(text for text in stop if text)
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        """The part of the held and the new text that cannot belong to a stop string."""
        if not self._stop:
            return text
        self._held += text
        cut = self._first_match()
        if cut is not None:
            passed, self._held, self.found = self._held[:cut], "", True
            return passed
        keep = self._longest_partial_match()
        passed, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return passed

    def flush(self) -> str:
        """The held text, which turned out to be no stop string."""
        passed, self._held = self._held, ""
        return passed

    def _first_match(self) -> int | None:
        # earliest end first, so that the result does not depend on how the text was cut into deltas
        matches = [(at + len(stop), at) for stop in self._stop if (at := self._held.find(stop)) >= 0]
        return min(matches)[1] if matches else None

    def _longest_partial_match(self) -> int:
        longest = max(map(len, self._stop)) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            if any(stop.startswith(self._held[-length:]) for stop in self._stop):
                return length
        return 0
