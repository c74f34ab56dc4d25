"""Many answers to one set of sources, as one sequence that reads the sources once.

The questions of a pack share the tokens of the prompt before them and do not see each other, so a
pack of twelve costs a fifth of twelve sequences. It is the attention pattern of a prefix cache,
with gradients.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Branch:
    """The part after the shared prefix for one question: the rest of its prompt and the target answer."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


@dataclass(frozen=True)
class Pack:
    """A prefix and its branches, laid out one behind the other; every branch goes on at the prefix's end."""

    prefix: tuple[int, ...]
    branches: tuple[Branch, ...]

    def __post_init__(self) -> None:
        assert self.prefix, "there is something to share"
        assert all(branch.prompt and branch.answer for branch in self.branches), "every branch asks and answers"

    def __len__(self) -> int:
        return len(self.prefix) + sum(map(len, self.branches))

    @cached_property
    def ids(self) -> Tensor:
        """(tokens,) int64."""
        rest = [token for branch in self.branches for token in (*branch.prompt, *branch.answer)]
        return torch.tensor([*self.prefix, *rest])

    @cached_property
    def positions(self) -> Tensor:
        """(tokens,) int64: the position of each token in its own sequence."""
        start = len(self.prefix)
        pieces = [torch.arange(start), *(torch.arange(start, start + len(branch)) for branch in self.branches)]
        return torch.cat(pieces)

    @cached_property
    def targets(self) -> Tensor:
        """(answer tokens,) int64: indices into `ids` of the tokens to predict, each from the token before it."""
        places, at = [], len(self.prefix)
        for branch in self.branches:
            places.append(torch.arange(at + len(branch.prompt), at + len(branch)))
            at += len(branch)
        return torch.cat(places)


def common_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """The number of tokens that all prompts share at their start, less than the whole of any prompt."""
    shortest = min(len(prompt) for prompt in prompts) - 1
    first = prompts[0]
    for at in range(shortest):
        if any(prompt[at] != first[at] for prompt in prompts):
            return at
    return shortest
