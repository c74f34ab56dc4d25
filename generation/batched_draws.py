"""Draws one token for each row of a step's logits where they lie on an accelerator, all rows at once.

`draws.draw_rows` is the reference: it works row by row, which on a GPU is some fifty kernels and several waits for
each. Here every operation serves all rows, and the host waits once, for the numbers of all. A row's token is the
reference's, because the arithmetic and the noise are (tests/generation/test_batched_draws.py).

Truncation (min-p, top-k, top-p) looks at the best `_CANDIDATES` tokens alone, and finds out whether they sufficed, as
in `sampling.keep_candidates`: what is kept is a prefix of the sorted row, and the candidates above the worst of them
are one too, so the result is certain where the kept ones end within those. Rows for which it is not, with a
distribution flatter than that, are drawn once more, together, from all tokens in order.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from generation.abstention import decide, refusal_probability
from generation.device_masks import DeviceMasks, to_device
from generation.draws import Draw, SamplingRow, logprobs_of, read_logprob
from generation.sampling import is_greedy, keyed_uniform, noise_key
from generation.types import SamplingParams

_CANDIDATES = 256  # of a row; a nucleus of .95 of an answer has rarely more than a hundred
_FLAT_AT_ONCE = 16  # rows whose whole vocabulary is sorted at a time: some ten megabytes each
_LOWEST = torch.finfo(torch.float64).min

Numbers = Sequence[int] | Sequence[float] | npt.NDArray[np.int64] | npt.NDArray[np.float64]
Change = Callable[[Tensor], Tensor]


class _Packed:
    """Lists of numbers that go to the device in one copy; each is read there when all have been added."""

    def __init__(self, kind: type[np.int64] | type[np.float64]) -> None:
        self._kind = kind
        self._lists: list[Numbers] = []
        self._parts: tuple[Tensor, ...] = ()

    def add(self, numbers: Numbers) -> Callable[[], Tensor]:
        """Takes a list; returns what gives it on the device, [n], once it is there."""
        place = len(self._lists)
        self._lists.append(numbers)
        return lambda: self._parts[place]

    def send(self, device: torch.device) -> None:
        """Copy all of them; nothing if there are none."""
        sizes = [len(one) for one in self._lists]
        if not sum(sizes):
            return
        flat = np.empty(sum(sizes), dtype=self._kind)
        for numbers, stop in zip(self._lists, accumulate(sizes), strict=True):
            flat[stop - len(numbers) : stop] = numbers
        self._parts = torch.split(to_device(flat, device), sizes)


class BatchedDraws:
    """Draws for the rows of a step as `draws.draw_rows` does. One instance for one thread and one device."""

    def __init__(self) -> None:
        """Keep no mask yet."""
        self._masks = DeviceMasks()

    def __call__(
        self, logits: Tensor, rows: Sequence[SamplingRow], *, meanwhile: Callable[[], None] | None = None
    ) -> list[Draw]:
        """Draw a token for every row.

        Args:
            logits: [n, V] float32, left as they are.
            rows: n of them, in the same order.
            meanwhile: Called while the device works, before its results are waited for.

        Returns:
            n draws, in the same order.
        """
        assert logits.shape[0] == len(rows), f"{len(rows)} rows for {logits.shape[0]} rows of logits"
        if not rows:
            return []
        draws, flat = self._drawn(logits, rows, candidates=_CANDIDATES, meanwhile=meanwhile)
        for start in range(0, len(flat), _FLAT_AT_ONCE):
            some = flat[start : start + _FLAT_AT_ONCE]
            again, _ = self._drawn(logits[some], [rows[n] for n in some], candidates=logits.shape[1])
            for n, draw in zip(some, again, strict=True):
                draws[n] = draw
        return draws

    def _drawn(
        self,
        logits: Tensor,
        rows: Sequence[SamplingRow],
        *,
        candidates: int,
        meanwhile: Callable[[], None] | None = None,
    ) -> tuple[list[Draw], list[int]]:
        """The rows' draws from the best `candidates` tokens, and the numbers of rows for which these do not suffice."""
        numbers, refusals = self._computed(logits, rows, candidates=candidates)
        count = len(rows)
        if meanwhile is not None:
            meanwhile()
        host = numbers.tolist()  # the one wait
        tokens, peaks, allowed_peaks = (host[part * count : (part + 1) * count] for part in range(3))
        left = iter(host[3 * count :])
        draws: list[Draw] = []
        for n, row in enumerate(rows):
            token = int(tokens[n])
            logprob = read_logprob(left, token, row.params.logprobs, vocabulary=logits.shape[1])
            refusal = next(left) if n in refusals else None
            drawn = math.isfinite(peaks[n]) and math.isfinite(allowed_peaks[n])
            draws.append(Draw(token, logprob, refusal) if drawn else Draw(token=None))
        return draws, [n for n, certain in enumerate(left) if not certain and draws[n].token is not None]

    def _computed(self, logits: Tensor, rows: Sequence[SamplingRow], *, candidates: int) -> tuple[Tensor, set[int]]:
        """Float64, which holds ids and float32 values exactly, and the rows that watch for a refusal.

        The numbers are the rows' tokens; the highest logits, which NaN and +inf become where there is one; the highest
        of the allowed logits, -inf where there is none; what else was asked for; and, where some row was truncated,
        whether each row's token is certain.
        """
        device, vocabulary = logits.device, logits.shape[1]
        ints, floats = _Packed(np.int64), _Packed(np.float64)
        slots: Callable[[], Tensor] | None = None
        masks = [_mask(row, vocabulary) for row in rows]
        if any(mask is not None for mask in masks):
            slots = ints.add(self._masks.slots(masks, vocabulary=vocabulary, device=device))
        changes = [change(rows, vocabulary, ints, floats) for change in (_bias, _repetition, _occurrence)]
        kinds = [_kind(row.params) for row in rows]
        plain = _Sampled([n for n, kind in enumerate(kinds) if kind == "plain"], rows, ints, floats)
        truncated = _Sampled([n for n, kind in enumerate(kinds) if kind == "truncated"], rows, ints, floats)
        ints.send(device)
        floats.send(device)

        processed, (bias, *penalties) = logits, changes
        if bias is not None:
            processed = bias(processed)
        if slots is not None:
            allowed = self._masks.table.index_select(0, slots())
            processed = processed.masked_fill(allowed.logical_not_(), float("-inf"))
        for penalty in penalties:
            if penalty is not None:
                processed = penalty(processed)
        processed, refusals = self._decided(logits, processed, rows)

        peaks = allowed_peaks = logits.amax(dim=-1)
        if processed is not logits:
            allowed_peaks = processed.amax(dim=-1)
        tokens, certain = _sampled(processed, plain, truncated, candidates=candidates)
        pieces = [tokens, peaks, allowed_peaks]
        for n, row in enumerate(rows):
            if row.params.logprobs is not None:
                # Numbers in any case, or the host would not know how many come.
                finite = logits[n].masked_fill(~peaks[n].isfinite(), 0.0)
                pieces += logprobs_of(finite, tokens[n], row.params.logprobs)
            if n in refusals:
                pieces.append(refusals[n].view(1))
        if certain is not None:
            pieces.append(certain)
        return torch.cat([piece.double() for piece in pieces]), set(refusals)

    def _decided(
        self, logits: Tensor, processed: Tensor, rows: Sequence[SamplingRow]
    ) -> tuple[Tensor, dict[int, Tensor]]:
        """The logits with what thresholds of refusals decide, and the probabilities, [] float64, by row number.

        Row by row: a sequence has one such draw, its first.
        """
        probabilities: dict[int, Tensor] = {}
        own = processed is not logits
        for n, row in enumerate(rows):
            if row.abstention is None:
                continue
            mask = row.mask
            if mask is not None:
                [slot] = self._masks.slots([mask], vocabulary=logits.shape[1], device=logits.device)
                mask = self._masks.table[slot]
            first, threshold = row.abstention.tokens[0], row.abstention.threshold
            probabilities[n] = refusal_probability(logits[n], first, mask=mask)
            if threshold is not None:
                processed, own = (processed if own else processed.clone()), True
                processed[n] = decide(processed[n], first, probability=probabilities[n], threshold=threshold)
        return processed, probabilities


class _Sampled:
    """The rows of one kind of sampling, their parameters on the device as columns."""

    def __init__(self, numbers: Sequence[int], rows: Sequence[SamplingRow], ints: _Packed, floats: _Packed) -> None:
        """Take these rows of a step; what they need on the device is added to `ints` and `floats`."""
        own = [rows[n] for n in numbers]
        self._numbers = numbers
        self._params = [row.params for row in own]
        self._places = ints.add(numbers)
        self._keys = ints.add([noise_key(row.seed, row.position) for row in own])
        self._top_ks = ints.add([params.top_k or 1 << 62 for params in self._params])
        self._temperatures = floats.add([params.temperature for params in self._params])
        self._top_ps = floats.add([params.top_p for params in self._params])
        # So far below the best token's logit min-p allows one; without it every finite logit stays.
        self._depths = floats.add(
            [math.log(params.min_p) if params.min_p > 0 else -math.inf for params in self._params]
        )
        self._narrowed = [params.min_p > 0 or params.top_k > 0 for params in self._params]
        self._are_narrowed = ints.add(self._narrowed)

    def __len__(self) -> int:
        return len(self._numbers)

    def take(self, values: Tensor) -> Tensor:
        """[s, …]: these rows of [n, …]."""
        return values if len(self) == values.shape[0] else values.index_select(0, self._places())

    def put(self, whole: Tensor | None, values: Tensor, count: int) -> Tensor:
        """[n]: `whole` with [s] values in these rows' places."""
        if len(self) == count:
            return values
        whole = values.new_zeros(count) if whole is None else whole
        return whole.index_copy_(0, self._places(), values)

    def draw(self, logits: Tensor) -> Tensor:
        """[s] int64: a token of each row of [s, V] logits, nothing left out."""
        ids = torch.arange(logits.shape[1], device=logits.device)
        return self._gumbel(logits.double() / self._column(self._temperatures), ids[None]).argmax(dim=-1)

    def draw_truncated(self, logits: Tensor, *, candidates: int) -> tuple[Tensor, Tensor]:
        """[s] int64 and [s] bool: a token of each row of [s, V] logits after min-p, top-k and top-p; is it certain."""
        vocabulary = logits.shape[1]
        size = min(vocabulary, candidates)
        temperatures = self._column(self._temperatures)
        # By (logit descending, id ascending).
        if size == vocabulary:
            values, ids = logits.sort(dim=-1, descending=True, stable=True)
            values = values.double() / temperatures
        else:  # topk breaks ties arbitrarily, so by id first, then stably by logit
            ids = logits.topk(size, dim=-1, sorted=False).indices.sort(dim=-1).values
            values, order = (logits.gather(1, ids).double() / temperatures).sort(dim=-1, descending=True, stable=True)
            ids = ids.gather(1, order)
        places = torch.arange(size, device=logits.device)
        kept = needed = self._narrow(values)
        if any(params.top_p < 1 for params in self._params):
            total = self._total(logits, values, places, kept)
            top_ps = self._column(self._top_ps)
            within = (values - total[:, None]).exp_().cumsum_(dim=-1) < top_ps
            if any(params.top_p >= 1 for params in self._params):
                within |= top_ps >= 1
            kept = torch.minimum(kept, 1 + within.sum(dim=-1))
            # The mass of min-p's or top-k's tokens is known once all of these are; that of a whole row always.
            if not any(self._narrowed):
                needed = kept
            elif not all(self._narrowed):
                needed = torch.where(self._are_narrowed().bool(), needed, kept)
        scores = self._gumbel(values, ids).masked_fill_(places >= kept[:, None], float("-inf"))
        drawn = ids.gather(1, scores.argmax(dim=-1, keepdim=True)).squeeze(1)
        if size == vocabulary:
            return drawn, torch.ones_like(drawn, dtype=torch.bool)
        return drawn, needed <= (values > values[:, -1:]).sum(dim=-1)

    def _narrow(self, values: Tensor) -> Tensor:
        """[s] int64: how many of each row's descending [s, m] logits are finite and survive min-p and top-k."""
        if any(params.min_p > 0 for params in self._params):
            kept = (values >= (values[:, :1] + self._column(self._depths)).clamp_min_(_LOWEST)).sum(dim=-1)
        else:
            kept = (values >= _LOWEST).sum(dim=-1)
        return torch.minimum(kept, self._top_ks()) if any(params.top_k for params in self._params) else kept

    def _total(self, logits: Tensor, values: Tensor, places: Tensor, kept: Tensor) -> Tensor:
        """[s] float64: the logarithm of the mass that top-p takes a share of: the kept tokens' or the whole row's."""
        some = None
        if any(self._narrowed):
            some = values.masked_fill(places >= kept[:, None], float("-inf")).logsumexp(dim=-1)
            if all(self._narrowed):
                return some
        whole = (logits.double() / self._column(self._temperatures)).logsumexp(dim=-1)
        return whole if some is None else torch.where(self._are_narrowed().bool(), some, whole)

    def _gumbel(self, values: Tensor, ids: Tensor) -> Tensor:
        """[s, m] float64: logits with the noise of their ids added; see `sampling.draw`."""
        noise = keyed_uniform(ids, self._keys()[:, None])
        return values - torch.log1p(noise.neg_()).neg_().log_()

    def _column(self, numbers: Callable[[], Tensor]) -> Tensor:
        return numbers()[:, None]


def _sampled(logits: Tensor, plain: _Sampled, truncated: _Sampled, *, candidates: int) -> tuple[Tensor, Tensor | None]:
    """[n] int64: a token of each row of [n, V] logits, and [n] bool, whether it is certain; None where all are."""
    count = logits.shape[0]
    tokens = certain = None
    if len(plain) + len(truncated) < count:
        tokens = logits.argmax(dim=-1)  # the lowest id among ties
    if len(plain):
        tokens = plain.put(tokens, plain.draw(plain.take(logits)), count)
    if len(truncated):
        drawn, sure = truncated.draw_truncated(truncated.take(logits), candidates=candidates)
        tokens = truncated.put(tokens, drawn, count)
        others = None if len(truncated) == count else torch.ones(count, dtype=torch.bool, device=logits.device)
        certain = truncated.put(others, sure, count)
    assert tokens is not None, "a row is greedy, plain or truncated"
    return tokens, certain


def _kind(params: SamplingParams) -> str:
    if is_greedy(params):
        return "greedy"
    return "plain" if params.min_p <= 0 and params.top_k <= 0 and params.top_p >= 1 else "truncated"


def _mask(row: SamplingRow, vocabulary: int) -> Tensor | None:
    """[V] bool on the CPU: the tokens that the row's request and its constraint both allow; None where all are."""
    allowed = row.params.allowed_tokens
    if allowed is None:
        return row.mask
    mask = torch.zeros(vocabulary, dtype=torch.bool)
    mask[[token for token in allowed if token < vocabulary]] = True
    return mask if row.mask is None else mask & row.mask


def _bias(rows: Sequence[SamplingRow], vocabulary: int, ints: _Packed, floats: _Packed) -> Change | None:
    """`logits.add_bias` of every row."""
    return _addition([row.params.logit_bias for row in rows], vocabulary, ints, floats)


def _occurrence(rows: Sequence[SamplingRow], vocabulary: int, ints: _Packed, floats: _Packed) -> Change | None:
    """`logits.penalise_occurrence` of every row."""
    added: list[Sequence[tuple[int, float]]] = []
    for row in rows:
        presence, frequency = row.params.presence_penalty, row.params.frequency_penalty
        counts = Counter(row.output) if presence != 0 or frequency != 0 else Counter()
        added.append([(token, -(presence + frequency * count)) for token, count in counts.items()])
    return _addition(added, vocabulary, ints, floats)


def _addition(
    added: Sequence[Sequence[tuple[int, float]]], vocabulary: int, ints: _Packed, floats: _Packed
) -> Change | None:
    """Adds to single logits: (token, added) pairs of each row, each token at most once in its row."""
    known = [
        (n * vocabulary + token, number)
        for n, pairs in enumerate(added)
        for token, number in pairs
        if token < vocabulary
    ]
    if not known:
        return None
    places, numbers = ints.add([place for place, _ in known]), floats.add([number for _, number in known])

    def change(logits: Tensor) -> Tensor:
        flat = logits.reshape(-1)
        return flat.index_copy(0, places(), flat.index_select(0, places()) + numbers().float()).view_as(logits)

    return change


def _repetition(rows: Sequence[SamplingRow], vocabulary: int, ints: _Packed, floats: _Packed) -> Change | None:
    """`logits.penalise_repetition` of every row."""
    found: list[npt.NDArray[np.int64]] = []
    penalties: list[npt.NDArray[np.float64]] = []
    for n, row in enumerate(rows):
        if row.params.repetition_penalty != 1:
            tokens = np.unique(np.array([*row.prompt, *row.output], dtype=np.int64))
            found.append(tokens[tokens < vocabulary] + n * vocabulary)
            penalties.append(np.full(found[-1].size, row.params.repetition_penalty))
    if not found:
        return None
    places, factors = ints.add(np.concatenate(found)), floats.add(np.concatenate(penalties))

    def change(logits: Tensor) -> Tensor:
        flat, factor = logits.reshape(-1), factors().float()
        seen = flat.index_select(0, places())
        return flat.index_copy(0, places(), torch.where(seen < 0, seen * factor, seen / factor)).view_as(logits)

    return change
