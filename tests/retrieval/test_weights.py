"""The precision that "auto" chooses, by what this processor does faster."""

import pytest
import torch

from retrieval.weights import bfloat16_speed, fastest_dtype, is_worth_it


def test_a_gpu_takes_float16() -> None:
    assert fastest_dtype(on_cuda=True) == "float16"


@pytest.mark.parametrize(("speed", "worth"), [(0.5, False), (1.0, False), (1.05, False), (1.2, True), (3.0, True)])
def test_bfloat16_must_be_faster_to_be_chosen(speed: float, worth: bool) -> None:
    assert is_worth_it(speed) is worth


def test_the_speed_is_measured_once_and_the_choice_repeats() -> None:
    assert bfloat16_speed() > 0
    assert bfloat16_speed() == bfloat16_speed()
    assert fastest_dtype(on_cuda=False) == fastest_dtype(on_cuda=False)


def test_a_cpu_takes_a_precision_that_torch_has() -> None:
    assert isinstance(getattr(torch, fastest_dtype(on_cuda=False)), torch.dtype)
