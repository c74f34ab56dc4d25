"""Chooses how many tokens to draft for each sequence, from the cost of steps and the acceptance rate.

A step verifies drafts by drawing at every position with that position's own noise and accepting
while equal, so drafting changes the time a text takes and never the text. Whether it saves time
depends on the load: verifying is nearly free while steps wait for memory, and costs in proportion
once they compute (vLLM reports up to 1.8x slower under full load). So the cost is learned.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from generation.pacing import StepCost

_WINDOW = 64.0  # draws after which a sequence's past counts 1/e
_WINDOW_OF_ALL = 1024.0
_PRIOR_FIRST, _PRIOR_FOLLOWING = 0.5, 0.75  # copies seldom start, but they go on
_PRIOR_WEIGHT = 2.0  # draws
_SOONEST_PROBE, _LATEST_PROBE = 8, 128  # steps without a draft before one is tried all the same
_PROBE_TOKENS = 2


class Drafter(Protocol):
    """Proposes continuations of one sequence."""

    def push(self, token_id: int) -> None:
        """Take the token that was generated next, accepted drafts included."""
        ...

    def propose(self, limit: int) -> list[int]:
        """At most `limit` tokens likely to come next, the next one first."""
        ...


class Acceptance:
    """The acceptance rates of a sequence's drafts: of the first token, and of each token after an accepted one.

    Two geometric rates, since a copy that has started goes on far more surely than it starts. Both
    are exponentially weighted means over draws. A sequence starts with the rates of `everyone`.
    """

    def __init__(self, *, everyone: "Acceptance | None" = None) -> None:
        self._everyone = everyone
        window = _WINDOW if everyone else _WINDOW_OF_ALL
        self._first = _Rate(everyone.first if everyone else _PRIOR_FIRST, window=window)
        self._following = _Rate(everyone.following if everyone else _PRIOR_FOLLOWING, window=window)
        self._patience = self._until_probe = _SOONEST_PROBE
        self.proposed = 0
        self.accepted = 0

    @property
    def first(self) -> float:
        """Probability that a draft's first token is accepted."""
        return self._first.mean

    @property
    def following(self) -> float:
        """Probability that a drafted token is accepted if the one before it was."""
        return self._following.mean

    def learn(self, proposed: int, accepted: int) -> None:
        """Update the rates with the accepted tokens of a draft; an empty draft changes nothing.

        Only tokens that were verified count: a draft cut short by an end of sequence is reported at
        the length it was cut to.
        """
        assert 0 <= accepted <= proposed, "no more can be accepted than was proposed"
        if proposed == 0:
            return
        self.proposed += proposed
        self.accepted += accepted
        self._first.learn(successes=min(accepted, 1), draws=1)
        if accepted:
            draws = min(accepted + 1, proposed) - 1  # the first rejection ends the draft
            self._following.learn(successes=accepted - 1, draws=draws)
        self._patience = _SOONEST_PROBE if accepted else min(2 * self._patience, _LATEST_PROBE)
        self._until_probe = self._patience
        if self._everyone is not None:
            self._everyone.learn(proposed, accepted)

    def wait(self) -> bool:
        """Count a step without a draft; returns whether to try one again."""
        self._until_probe = max(0, self._until_probe - 1)
        return self._until_probe == 0


class Speculative(Protocol):
    """A decoding sequence that gets drafts where it has a drafter and an acceptance record."""

    @property
    def drafter(self) -> Drafter | None:
        """Proposes its next tokens."""
        ...

    @property
    def acceptance(self) -> Acceptance | None:
        """The acceptance rates of its drafts, from `SpeculationPolicy.acceptance`."""
        ...


class SpeculationPolicy:
    """Chooses draft lengths that raise the tokens generated per second, and loses little when wrong.

    Losses are bounded by an account in seconds. Steps pay in `loss_share` of their duration, drafted
    tokens cost what a row costs, accepted ones bring the time a token takes without drafts, and
    nothing is drafted that the account cannot pay. So under the learned cost drafting never loses
    more than `loss_share` of the time and half a step, whatever the texts are. No clock is read:
    the same calls give the same answers. Not safe with several threads.
    """

    def __init__(self, *, max_draft: int = 16, loss_share: float = 0.01) -> None:
        """Start without knowing the model's cost.

        Args:
            max_draft: Most tokens drafted for one sequence in one step.
            loss_share: Share of the time that may be lost on drafts that turn out wrong.

        Raises:
            ValueError: `max_draft` is below 1 or `loss_share` not between 0 and 1.
        """
        if max_draft < 1:
            raise ValueError(f"max_draft must be at least 1 token, got {max_draft}")
        if not 0.0 <= loss_share <= 1.0:
            raise ValueError(f"loss_share must be between 0 and 1, got {loss_share}")
        self._max_draft = max_draft
        self._loss_share = loss_share
        self.cost = StepCost()
        self._everyone = Acceptance()
        self._account: float | None = None  # seconds; None until a step was seen
        self._settled = 0  # accepted tokens that have been paid in
        self._unpaid = 0  # drafted tokens that have not been paid for
        self._sequences = 1

    def acceptance(self) -> Acceptance:
        """A new sequence's record, which also updates the rates of all and the account."""
        return Acceptance(everyone=self._everyone)

    def observe(self, *, rows: int, seconds: float) -> None:
        """Take in a step that only decoded: the query tokens it was fed and how long it took, drafting included."""
        self.cost.observe(rows=rows, seconds=seconds)
        usual = self.cost.seconds(rows)
        if self._account is None:
            self._account = usual / 2
        # Paid for afterwards, at the measured cost of its rows; an outlier of the machine earns nothing.
        self._account += self._loss_share * min(seconds, usual) - self.cost.row * self._unpaid
        self._unpaid = 0

    def propose(
        self, sequences: Sequence[Speculative], *, budget: int, limits: Sequence[int] | None = None
    ) -> list[list[int]]:
        """A draft, often empty, for each sequence of the next step.

        Args:
            sequences: All that decode in the step, since they share its cost.
            budget: Most drafted tokens, all sequences together.
            limits: Most tokens each sequence can use, such as what it may still generate less one.
        """
        if not sequences:
            return []
        self._settle(len(sequences))
        budget = min(budget, self._affordable())
        limits = [self._max_draft] * len(sequences) if limits is None else limits
        estimates = [None if sequence.drafter is None else sequence.acceptance for sequence in sequences]
        lengths = self.lengths(estimates, budget=budget, limits=limits)
        spare = budget - sum(lengths)
        drafts: list[list[int]] = []
        for sequence, estimate, planned, limit in zip(sequences, estimates, lengths, limits, strict=True):
            length = planned
            if not planned and estimate is not None and estimate.wait():
                length = max(0, min(_PROBE_TOKENS, limit, spare))
            draft = sequence.drafter.propose(length)[:length] if length and sequence.drafter is not None else []
            spare -= 0 if planned else len(draft)
            drafts.append(draft)
        self._unpaid += sum(map(len, drafts))
        return drafts

    def lengths(
        self, estimates: Sequence[Acceptance | None], *, budget: int, limits: Sequence[int] | None = None
    ) -> list[int]:
        """Draft lengths that maximise expected tokens per second of a step with one row for each sequence.

        With a linear cost the best set is found greedily: the likeliest token goes first, and each
        one is added while its probability over the row's cost exceeds the rate so far.

        Args:
            estimates: For each sequence of the step; None where nothing can be drafted.
            budget: Most drafted tokens, all sequences together.
            limits: Most tokens for each sequence.
        """
        if not estimates:
            return []
        tokens, row = float(len(estimates)), self.cost.row
        seconds = self.cost.seconds(len(estimates))
        worth = tokens * row / seconds  # the least probability that pays; it only rises from here
        marginals: list[tuple[float, int]] = []
        for index, estimate in enumerate(estimates):
            limit = self._max_draft if limits is None else min(limits[index], self._max_draft)
            probability = 0.0 if estimate is None else estimate.first
            for _ in range(limit):
                if estimate is None or probability <= worth:
                    break
                marginals.append((-probability, index))
                probability *= estimate.following
        marginals.sort()
        lengths = [0] * len(estimates)
        for negative, index in marginals[: max(0, budget)]:
            if -negative * seconds <= tokens * row:
                break
            lengths[index] += 1
            tokens -= negative
            seconds += row
        return lengths

    def _settle(self, sequences: int) -> None:
        """Credit the tokens accepted since the last step, at the time a token took without drafts."""
        step = self.cost.seconds(self._sequences)
        if self._account is not None:
            earned = (self._everyone.accepted - self._settled) * step / self._sequences
            # Gains of long ago must not pay for losses without end, but any plan that pays must be
            # affordable; one costly step must not disable drafts forever.
            self._account = max(-2 * step, min(self._account + earned, 4 * step))
        self._settled = self._everyone.accepted
        self._sequences = sequences

    def _affordable(self) -> int:
        """Rows that the account can afford; the first step, whose cost is unknown, drafts nothing."""
        return 0 if self._account is None else max(0, int(self._account / self.cost.row))


@dataclass(slots=True)
class _Rate:
    """An exponentially weighted mean of draws that starts at `mean`, worth a few draws."""

    mean: float
    window: float
    weight: float = _PRIOR_WEIGHT

    def learn(self, *, successes: int, draws: int) -> None:
        if draws:
            self.weight *= math.exp(-draws / self.window)
            self.mean = (self.mean * self.weight + successes) / (self.weight + draws)
            self.weight += draws
