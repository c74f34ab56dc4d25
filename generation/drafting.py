"""Drafts of the next tokens, copied from the sources, the rest of the prompt or the output itself.

Grounded answers often quote. Where the last tokens occurred before, the text after them is a likely
continuation: prompt lookup (Saxena 2023), with the longest match preferred and the draft's length
bound to the match's as in SuffixDecoding (Oliaro et al. 2024, arXiv:2411.04975). A draft only
proposes; the engine verifies every token of it.
"""

from collections import defaultdict
from collections.abc import Sequence

_OCCURRENCES = 64  # of one n-gram that are looked at, the latest: bounds the work of a push on degenerate text
_GROWTH = 2  # drafted tokens for each matched one
_SOLID = 4  # matched tokens from which on an interrupted copy is resumed
_GAP = 8  # generated tokens, a citation marker or a small edit, after which a broken copy is given up
_SKIPPED = 1  # tokens of the source that an edit may leave out


class SourceDrafter:
    """Follows one sequence and finds the text that it is copying.

    A running copy continues while its drafts are accepted. Otherwise the longest match wins, then one within
    a source, then the latest. An interrupted copy resumes when one of its next tokens is
    generated soon after, so that a citation marker or a replaced word does not end a quotation.
    Not safe with several threads; the state depends on the tokens alone, never on calls of `propose`.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        *,
        sources: Sequence[tuple[int, int]] = (),
        min_match: int = 2,
        max_match: int = 16,
    ) -> None:
        """Index a prompt: one pass, about 0.2 µs a token.

        Args:
            prompt: Token ids.
            sources: (start, stop) spans of the prompt that hold the presented sources. A copy does
                not run over the end of its source.
            min_match: Fewest equal tokens before a position that make it a match.
            max_match: Longer matches count as this long.

        Raises:
            ValueError: a span lies outside the prompt, or not 1 <= min_match <= max_match.
        """
        if not 1 <= min_match <= max_match:
            raise ValueError(f"matches need 1 <= min_match <= max_match, got {min_match} and {max_match}")
        self._tokens = list(prompt)
        self._min_match, self._max_match = min_match, max_match
        self._source_ends = [0] * len(self._tokens)  # by position: where its source stops, 0 outside of sources
        for start, stop in sources:
            if not 0 <= start <= stop <= len(self._tokens):
                raise ValueError(f"the span ({start}, {stop}) lies outside the prompt of {len(self._tokens)} tokens")
            self._source_ends[start:stop] = [stop] * (stop - start)
        # where each n-gram continues; the last entry of the current suffix's list is the position to be generated
        self._continuations: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        shifted = (self._tokens[offset:] for offset in range(min_match))
        for position, ngram in enumerate(zip(*shifted, strict=False), start=min_match):
            self._continuations[ngram].append(position)
        self._broken: int | None = None  # where the last solid copy would have gone on
        self._broken_until = 0
        self._copy: int | None = None  # position of the token expected next
        self._matched = 0
        self._follow_longest_match()

    def push(self, token_id: int) -> None:
        """Take the token that was generated next."""
        tokens, copy = self._tokens, self._copy
        continues = copy is not None and tokens[copy] == token_id
        tokens.append(token_id)
        if len(tokens) >= self._min_match:
            self._continuations[tuple(tokens[-self._min_match :])].append(len(tokens))
        if copy is not None and continues:
            self._follow(copy + 1, self._matched + 1)
            return
        if copy is not None and self._matched >= _SOLID:
            self._broken, self._broken_until = copy, len(tokens) + _GAP
        self._follow_longest_match()
        if self._matched < _SOLID and len(tokens) <= self._broken_until:
            self._take_up_broken_copy(token_id)

    def propose(self, limit: int) -> list[int]:
        """At most `limit` tokens likely to come next; empty when nothing matches."""
        copy = self._copy
        if copy is None or limit < 1:
            return []
        count = min(limit, _GROWTH * self._matched)
        if source_end := self._source_end(copy):
            return self._tokens[copy : min(copy + count, source_end)]
        draft = self._tokens[copy : copy + count]
        period = len(self._tokens) - copy
        while len(draft) < count:  # the copy reaches its own output: text that repeats itself
            draft.append(draft[-period])
        return draft

    def _follow(self, position: int, matched: int) -> None:
        """Expect the token at `position` next, unless a source ends just before it."""
        at_end = self._source_end(position - 1) == position
        self._copy, self._matched = (None, 0) if at_end else (position, matched)

    def _follow_longest_match(self) -> None:
        self._copy, self._matched = None, 0
        tokens = self._tokens
        if len(tokens) < self._min_match:
            return
        best = (0, False, 0)
        for position in self._continuations[tuple(tokens[-self._min_match :])][-1 - _OCCURRENCES : -1]:
            if self._source_end(position - 1) == position:
                continue
            matched = self._min_match
            while matched < min(self._max_match, position) and tokens[position - 1 - matched] == tokens[-1 - matched]:
                matched += 1
            best = max(best, (matched, self._source_end(position) > 0, position))
        if best[0]:
            self._follow(best[2], best[0])

    def _take_up_broken_copy(self, token_id: int) -> None:
        """Where the broken copy goes on with the token just generated, follow it from there.

        One equal token is weak evidence, but it is the expected one: it outweighs a short match elsewhere.
        """
        assert self._broken is not None, "a copy broke before it can be taken up"
        for position in range(self._broken, min(self._broken + _SKIPPED + 1, len(self._tokens) - 1)):
            if self._tokens[position] == token_id:
                self._follow(position + 1, 1)
                return
            if self._source_end(position) == position + 1:
                return

    def _source_end(self, position: int) -> int:
        return self._source_ends[position] if position < len(self._source_ends) else 0
