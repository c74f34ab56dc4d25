"""Decides at the first token whether to refuse, by the model's own probability of the refusal.

A classifier with a reject option (Chow 1970, doi:10.1109/TIT.1970.1054406): the score is the model's
own probability of beginning the refusal, and the caller sets its threshold. The decision is made at the
first position only, so the generated tokens show it and no other state is kept.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from generation.constraints import TokenConstraint


def refusal_probability(logits: Tensor, token: int, *, mask: Tensor | None) -> Tensor:
    """How probable it is that the refusal begins: softmax over the allowed tokens at temperature 1.

    Bias and penalties are ignored: they change the choice of a token, not the model's probability.

    Args:
        logits: [V] float32, the model's own.
        token: The refusal's first token id, below V.
        mask: [V] bool, True where a token may come first; None allows all.

    Returns:
        [] float64; NaN when the logits are not numbers or nothing is allowed.
    """
    if mask is not None:
        logits = logits.masked_fill(~mask.to(logits.device), float("-inf"))
    return torch.softmax(logits.double(), dim=0)[token]


def decide(logits: Tensor, token: int, *, probability: Tensor, threshold: float) -> Tensor:
    """Allow only the refusal's first token from `threshold` on, and every other token below it.

    Decided where the logits are: nothing waits for a device. Something is always left: the token is
    alone allowed only if its probability is exactly 1, and forbidden only if that is exactly 0.

    Args:
        logits: [V] float32, processed; -inf where forbidden.
        token: The refusal's first token id, below V.
        probability: [] float64 from `refusal_probability`.
        threshold: Above 0, at most 1.

    Returns:
        [V] float32.
    """
    first = torch.arange(logits.shape[0], device=logits.device) == token
    return logits.masked_fill(first != (probability >= threshold), float("-inf"))


class RefusalConstraint:
    """A `constraints.TokenConstraint`: an output that begins with the refusal is exactly the refusal.

    Any other beginning leaves the sequence to the constraint it had. The first position is left to
    `decide`: which token begins is a matter of logits.
    """

    def __init__(
        self,
        refusal: tuple[int, ...],
        *,
        otherwise: "TokenConstraint | None",
        eos_ids: frozenset[int],
        vocab_size: int,
        said: int | None = 0,
    ) -> None:
        """Begin.

        Args:
            refusal: Token ids, at least one.
            otherwise: The constraint on an answer; None leaves an answer unconstrained.
            eos_ids: Ids that end a sequence; without any the refusal may go on.
            vocab_size: The length of every mask.
            said: Number of refusal tokens generated; None once another token was generated.
        """
        self._refusal = refusal
        self._otherwise = otherwise
        self._eos_ids = eos_ids
        self._vocab_size = vocab_size
        self._said = said

    def mask(self) -> Tensor | None:
        """See `constraints.TokenConstraint.mask`."""
        due = self._due()
        if due is None:
            return None if self._otherwise is None else self._otherwise.mask()
        mask = torch.zeros(self._vocab_size, dtype=torch.bool)
        mask[sorted(due)] = True
        return mask

    def allows(self, token_id: int) -> bool:
        """See `constraints.TokenConstraint.allows`."""
        due = self._due()
        if due is None:
            return self._otherwise is None or self._otherwise.allows(token_id)
        return token_id in due

    def advance(self, token_id: int) -> None:
        """See `constraints.TokenConstraint.advance`."""
        if self._said is not None and (self._said or token_id == self._refusal[0]):
            due = self._due()
            assert due is None or token_id in due, "a token that the mask forbids"
            self._said += 1
            return
        self._said = None
        if self._otherwise is not None:
            self._otherwise.advance(token_id)

    def clone(self) -> "RefusalConstraint":
        """See `constraints.TokenConstraint.clone`."""
        return RefusalConstraint(
            self._refusal,
            otherwise=None if self._otherwise is None else self._otherwise.clone(),
            eos_ids=self._eos_ids,
            vocab_size=self._vocab_size,
            said=self._said,
        )

    def _due(self) -> frozenset[int] | None:
        """The ids allowed next; None where the refusal does not constrain them."""
        if not self._said:
            return None
        if self._said < len(self._refusal):
            return frozenset({self._refusal[self._said]})
        return self._eos_ids or None
