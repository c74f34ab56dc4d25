"""The processes of a training that torchrun started: each reads a share of a step, and all add up their gradients."""

from collections.abc import Sequence

import torch


def workers() -> int:
    """How many processes train together."""
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def worker() -> int:
    """The number of this one, from 0."""
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def add_up(weights: Sequence[torch.nn.Parameter]) -> None:
    """Gives every process the sum of all gradients of the weights; one alone keeps its own."""
    if workers() == 1:
        return
    flat = torch.cat([torch.zeros_like(w).flatten() if w.grad is None else w.grad.flatten() for w in weights])
    torch.distributed.all_reduce(flat)
    at = 0
    for weight in weights:
        weight.grad = flat[at : at + weight.numel()].view_as(weight).clone()
        at += weight.numel()
