"""How much of a prompt to read in a step while others wait for their next token."""


class PrefillPace:
    """Learns how fast prompts are read, and sizes chunks so that a step takes about `target_s` seconds.

    Without it a chunk of 512 tokens is 10 ms on a GPU and two seconds on two CPU cores, and every
    stream stands still for as long. The result never depends on the chunks, only the pace does.
    """

    def __init__(self, *, target_s: float, smallest: int, largest: int) -> None:
        assert target_s > 0
        assert 1 <= smallest <= largest
        self._target_s = target_s
        self._smallest = smallest
        self._largest = largest
        self._tokens_per_s: float | None = None

    @property
    def budget(self) -> int:
        """Prompt tokens for the next step that also decodes."""
        if self._tokens_per_s is None:
            return self._smallest
        return max(self._smallest, min(self._largest, int(self._tokens_per_s * self._target_s)))

    def observe(self, *, prefill_tokens: int, seconds: float) -> None:
        """Learn from a step that read `prefill_tokens` of prompts, whatever else it did."""
        if prefill_tokens < self._smallest:
            return  # the rest of a prompt: fixed costs drown what it says
        rate = prefill_tokens / max(seconds, 1e-6)
        self._tokens_per_s = (
            rate if self._tokens_per_s is None else self._tokens_per_s + 0.3 * (rate - self._tokens_per_s)
        )
