"""The evidence reader's training: the device's losses beside the processor's, and how fast it reads groups."""

import copy
import math
import random
import time

import torch

from app.tuning.evidence_reader.groups import Group, Reading, View
from app.tuning.evidence_reader.losses import Losses
from app.tuning.evidence_reader.model import EvidenceModel
from app.tuning.evidence_reader.training import Recipe, Trainer
from retrieval.span_model import Window
from tests.bench.gpu.checklist import Checklist, Speed

STEPS = 4
VOCABULARY = 2000


def random_groups(count: int, *, tokens: int, seed: int) -> list[Group]:
    """Groups of passages of at most `tokens`: some paired, some without a question that nothing answers."""
    random_ = random.Random(seed)

    def reading(question: list[int], *, answered: bool) -> Reading:
        size = random_.randint(tokens // 2, tokens)
        ids = (101, *question, 102, *(random_.randrange(200, VOCABULARY) for _ in range(size)), 102)
        first = len(question) + 2
        at = random_.randrange(size - 3)
        tags = tuple(int(answered and at <= place < at + 3) for place in range(size))
        golds = ((first + at, first + at + 2),) if answered else ()
        return Reading(Window(ids, first, ((0, 0),) * size), golds, tags)

    def group(number: int) -> Group:
        asked, other = ([random_.randrange(200, VOCABULARY) for _ in range(9)] for _ in range(2))
        right = reading(asked, answered=True)
        view = View((right, *(reading(asked, answered=False) for _ in range(number % 3))))
        second = View((reading(other, answered=False),)) if number % 4 else None
        return Group(view, second, paired=number % 4 == 1)

    return [group(number) for number in range(count)]


def random_reader(*, layers: int, width: int) -> EvidenceModel:
    """An encoder of the reader's kind with weights by chance."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        intermediate_size=4 * width,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return EvidenceModel(BertModel(config, add_pooling_layer=False), tags=True)


def reader_training(checks: Checklist, device: torch.device) -> None:
    """A few steps on both in float32, then on the device as it trains: bfloat16, the size that ships."""
    small = random_reader(layers=2, width=64)
    groups = random_groups(8 * STEPS, tokens=60, seed=1)
    beside = losses(copy.deepcopy(small), groups, size=8)
    found = losses(small.to(device), groups, size=8)
    worst = max(abs(one - other) / max(1, abs(other)) for one, other in zip(found, beside, strict=True))
    parts = len(Losses._fields)
    checks.check("reader's training: the losses are the processor's", worst < 2e-3, f"off by {worst:.1e} at most")
    checks.check(
        "reader's training: every part of the loss counts", len(found) == STEPS * (1 + parts) and 0 not in found
    )
    real = device.type == "cuda"
    model = random_reader(layers=6, width=384) if real else small
    size = 96 if real else 8
    some = random_groups(size * STEPS, tokens=250 if real else 60, seed=2)
    model = model.to(device)
    losses(model, some[:size], size=size, half=real)
    began = time.perf_counter()
    told = losses(model, some, size=size, half=real)
    took = time.perf_counter() - began
    tokens = sum(group.tokens for group in some)
    checks.check("reader's training: steps in half precision end", all(map(math.isfinite, told)))
    checks.measured(Speed(f"reader's training, a step of {size} groups", 1000 * took / STEPS, tokens / took))


def losses(model: EvidenceModel, groups: list[Group], *, size: int, half: bool = False) -> list[float]:
    """The loss of every step and its parts; a whole number of steps of `size` groups."""
    steps = len(groups) // size
    trainer = Trainer(model, Recipe(groups=size, warmup=0.5), steps=steps, half=half)
    return [part for told in trainer.run(lambda step: groups[size * step : size * (step + 1)]) for part in told[:-1]]
