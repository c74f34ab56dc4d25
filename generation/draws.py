"""Draws one token for each row of a step's logits."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from generation.abstention import decide, refusal_probability
from generation.logits import process
from generation.sampling import is_greedy, sample
from generation.types import Abstention, SamplingParams, TokenLogprob


@dataclass(frozen=True, slots=True, eq=False)
class SamplingRow:
    """The sampling parameters of one row of logits.

    Attributes:
        params: How tokens are chosen.
        seed: Any integer; its low 64 bits count.
        position: Absolute position, in the sequence, of the token to be drawn.
        prompt: Token ids of the prompt.
        output: Token ids generated so far.
        mask: [V] bool, True where the constraint allows the token; None allows all.
        abstention: The refusal to watch for; None after the first position.
    """

    params: SamplingParams
    seed: int
    position: int
    prompt: Sequence[int]
    output: Sequence[int]
    mask: Tensor | None = None
    abstention: Abstention | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """The result of drawing for a row; `token` is None when its logits were not numbers or nothing is allowed.

    `logprob` is there when `SamplingParams.logprobs` asked for it and a token was drawn, `abstention`
    (how probable the refusal was) when the row watched for it and a token was drawn.
    """

    token: int | None
    logprob: TokenLogprob | None = None
    abstention: float | None = None


def draw_rows(logits: Tensor, rows: Sequence[SamplingRow]) -> list[Draw]:
    """Draw a token for every row. The result for a row depends on that row alone.

    Args:
        logits: [n, V] float32, left as they are.
        rows: n of them, in the same order.

    Returns:
        n draws, in the same order.
    """
    assert logits.shape[0] == len(rows), f"{len(rows)} rows for {logits.shape[0]} rows of logits"
    if not rows:
        return []
    processed = [
        process(raw, row.params, prompt=row.prompt, output=row.output, mask=row.mask)
        for raw, row in zip(logits.unbind(), rows, strict=True)
    ]
    refusals = _refusals(logits, rows, processed)
    usable = _usable(logits, processed)
    tokens = _greedy_tokens(logits, processed, [n for n, row in enumerate(rows) if usable[n] and is_greedy(row.params)])
    for n, row in enumerate(rows):
        if usable[n] and n not in tokens:
            tokens[n] = sample(processed[n], row.params, seed=row.seed, position=row.position)
    return _report(logits, rows, tokens, refusals)


def _refusals(logits: Tensor, rows: Sequence[SamplingRow], processed: list[Tensor]) -> dict[int, Tensor]:
    """[] float64 probability of the refusal by row number; where a threshold is set, what it decides is `processed`."""
    probabilities: dict[int, Tensor] = {}
    for n, row in enumerate(rows):
        if row.abstention is not None:
            first, threshold = row.abstention.tokens[0], row.abstention.threshold
            probabilities[n] = refusal_probability(logits[n], first, mask=row.mask)
            if threshold is not None:
                processed[n] = decide(processed[n], first, probability=probabilities[n], threshold=threshold)
    return probabilities


def _usable(logits: Tensor, processed: Sequence[Tensor]) -> list[bool]:
    """Which rows can be drawn from: the model gave numbers, and something is still allowed.

    Only a row's maximum is checked: NaN and +inf become it, and it is -inf only when no token is allowed.
    """
    finite = logits.amax(dim=-1).isfinite()
    changed = [n for n, row in enumerate(processed) if not _is_row(row, logits, n)]
    if changed:
        finite[changed] &= torch.stack([processed[n].amax() for n in changed]).isfinite()
    usable: list[bool] = finite.tolist()
    return usable


def _greedy_tokens(logits: Tensor, processed: Sequence[Tensor], greedy: Sequence[int]) -> dict[int, Tensor]:
    """[] int64 best token by row number, the lowest id among ties; one call for all rows left as they were."""
    plain = [n for n in greedy if _is_row(processed[n], logits, n)]
    tokens = {n: processed[n].argmax() for n in greedy if not _is_row(processed[n], logits, n)}
    if plain:
        best = (logits if len(plain) == logits.shape[0] else logits[plain]).argmax(dim=-1)
        tokens.update(zip(plain, best.unbind(), strict=True))
    return tokens


def _is_row(row: Tensor, logits: Tensor, n: int) -> bool:
    """Whether row `n` is unprocessed: it still is the model's own memory."""
    return row.data_ptr() == logits[n].data_ptr()


def _report(
    logits: Tensor, rows: Sequence[SamplingRow], tokens: dict[int, Tensor], refusals: dict[int, Tensor]
) -> list[Draw]:
    """The draws on the host, brought there in one copy: float64 holds ids and float32 values exactly."""
    pieces: list[Tensor] = []
    for n, token in tokens.items():
        top = rows[n].params.logprobs
        pieces.append(token.double().view(1))
        if top is not None:
            pieces += logprobs_of(logits[n], token, top)
        if n in refusals:
            pieces.append(refusals[n].view(1))
    numbers = iter(torch.cat(pieces).tolist() if pieces else [])
    draws = [Draw(token=None)] * len(rows)
    for n in tokens:
        token_id = int(next(numbers))
        logprob = read_logprob(numbers, token_id, rows[n].params.logprobs, vocabulary=logits.shape[1])
        draws[n] = Draw(token=token_id, logprob=logprob, abstention=next(numbers) if n in refusals else None)
    return draws


def read_logprob(numbers: Iterator[float], token_id: int, top: int | None, *, vocabulary: int) -> TokenLogprob | None:
    """What `logprobs_of` sent, taken off the numbers on the host; None where nothing was asked for."""
    if top is None:
        return None
    top = min(top, vocabulary)
    chosen = next(numbers)
    ids, values = list(islice(numbers, top)), list(islice(numbers, top))
    likeliest = tuple((int(i), value) for i, value in zip(ids, values, strict=True) if value > -math.inf)
    return TokenLogprob(token_id=token_id, logprob=chosen, top=likeliest)


def logprobs_of(logits: Tensor, token: Tensor, top: int) -> list[Tensor]:
    """[1], [top] and [top] float64: the token's log probability, the likeliest ids, theirs.

    The likeliest are ordered by (logit descending, id ascending): rounding merges log probabilities
    of different logits, and the first must be the greedy choice.
    """
    logprobs = torch.log_softmax(logits, dim=0)
    top = min(top, logits.shape[0])
    ids = token.new_empty(0)
    if top > 0:
        # topk breaks ties arbitrarily: only the last place's value is taken from it
        edge = torch.topk(logits, top, sorted=False).values.amin()
        tied = (logits >= edge).nonzero().squeeze(1)
        ids = tied[torch.sort(logits[tied], descending=True, stable=True).indices[:top]]
    return [logprobs.index_select(0, token.view(1)).double(), ids.double(), logprobs[ids].double()]
