"""Fine-tuning a cross-encoder: listwise softmax over one positive and its near misses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.tuning.reranker.examples import Candidates, Example, batches
from app.tuning.reranker.first_stage import FloatScores, unit_range


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All hyperparameters. Rates are AdamW's peak learning rates."""

    layers: int = 3
    max_tokens: int = 160
    steps: int = 1000
    questions: int = 8
    negatives: int = 5
    learning_rate: float = 2e-4
    warmup: float = 0.06
    weight_decay: float = 0.01
    seed: int = 7


def start(base: Path, recipe: Recipe) -> Any:
    """Creates a `CrossEncoder` from the embedder's first layers and a new, untrained head."""
    import torch
    from sentence_transformers import CrossEncoder

    torch.manual_seed(recipe.seed)
    return CrossEncoder(
        str(base),
        num_labels=1,
        max_length=recipe.max_tokens,
        device="cpu",
        local_files_only=True,
        config_kwargs={
            "num_hidden_layers": recipe.layers,
            # One pass over the data cannot be learnt by heart.
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        },
    )


class Trainer:
    """Runs a recipe step by step; it can be saved and resumed with the same result."""

    def __init__(self, model: Any, recipe: Recipe, *, device: str = "cpu") -> None:
        import torch

        self.model = model.to(device)
        self.step = 0
        self._recipe = recipe
        self._device = device
        # Word vectors stay: few of them occur in the training data, and the others must keep their company.
        for name, weight in model.named_parameters():
            weight.requires_grad = "word_embeddings" not in name
        trained = [weight for weight in model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)

    def run(self, examples: Sequence[Example]) -> Iterator[float]:
        """Runs the remaining steps and yields each loss."""
        import torch

        batches = _endless(examples, self._recipe)
        for _ in range(self.step):
            next(batches)
        self.model.train()
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        while self.step < self._recipe.steps:
            batch = next(batches)
            for group in self._optimizer.param_groups:
                group["lr"] = self._recipe.learning_rate * _rate(self.step, self._recipe)
            loss = self._loss(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            self.step += 1
            yield float(loss.detach())

    def save_state(self, file: Path) -> None:
        """Saves the state for `load_state` atomically."""
        import torch

        state = {"model": self.model.state_dict(), "optimizer": self._optimizer.state_dict(), "step": self.step}
        torch.save(state, file.with_suffix(".new"))
        file.with_suffix(".new").replace(file)

    def load_state(self, file: Path) -> None:
        """Resumes from the state that `save_state` wrote."""
        import torch

        state = torch.load(file, map_location=self._device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.step = int(state["step"])

    def _loss(self, batch: Sequence[Example]) -> Any:
        import torch

        pairs = [(example.query, text) for example in batch for text in (example.positive, *example.negatives)]
        features = self.model.preprocess(pairs)
        features = {name: value.to(self._device) if hasattr(value, "to") else value for name, value in features.items()}
        scores = self.model(features)["scores"].reshape(len(batch), -1)
        first = torch.zeros(len(batch), dtype=torch.long, device=scores.device)
        return torch.nn.functional.cross_entropy(scores, first)


def save(model: Any, folder: Path) -> None:
    """The model in half precision, as `CrossEncoder` loads it: safetensors, configuration, tokenizer."""
    import torch
    from sentence_transformers import CrossEncoder

    model.save_pretrained(str(folder), create_model_card=False)
    half = CrossEncoder(str(folder), device="cpu", local_files_only=True, model_kwargs={"dtype": torch.float16})
    half.save_pretrained(str(folder), create_model_card=False)


def _endless(examples: Sequence[Example], recipe: Recipe) -> Iterator[list[Example]]:
    """Yields batches of successive passes, each with its own seed."""
    seed = recipe.seed
    while True:
        passed = batches(examples, questions=recipe.questions, negatives=recipe.negatives, seed=seed)
        assert passed, "no example has enough near misses"
        yield from passed
        seed += 1


def _rate(step: int, recipe: Recipe) -> float:
    """The learning rate as a share of the peak: linear warm-up, then linear decay to 0."""
    warm = max(1, round(recipe.steps * recipe.warmup))
    return min((step + 1) / warm, (recipe.steps - step) / max(1, recipe.steps - warm))


SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def ndcg(ranked: Sequence[bool], *, missing: int, k: int = 10) -> float:
    """Normalised discounted cumulative gain of the first `k` of a ranking, grades being 0 and 1.

    `missing` counts relevant documents that are not in the ranking (Järvelin and Kekäläinen 2002).
    """
    discounts = 1 / np.log2(np.arange(2, k + 2))
    gain = float(np.dot(np.array(ranked[:k], dtype=np.float64), discounts[: len(ranked[:k])]))
    ideal = float(discounts[: min(k, sum(ranked) + missing)].sum())
    return gain / ideal if ideal else 0.0


def mixed(first_stage: FloatScores, rerank: FloatScores, *, share: float) -> FloatScores:
    """Mixes `share` of the rerank scores with the first stage's scores, both scaled to [0, 1] per question."""
    mixture: FloatScores = np.float32(share) * unit_range(rerank) + np.float32(1 - share) * unit_range(first_stage)
    return mixture


def measure(model: Any, found: Sequence[Candidates], *, batch_size: int = 16) -> dict[float, float]:
    """Mean nDCG@10 by the share of the rerank score in the mixture; 0 is the first stage, 1 the reranker alone."""
    values: dict[float, list[float]] = {share: [] for share in SHARES}
    for candidates in found:
        pairs = [(candidates.query, passage) for passage in candidates.passages]
        rerank = np.asarray(model.predict(pairs, batch_size=batch_size, show_progress_bar=False), dtype=np.float32)
        first = np.array(candidates.scores, dtype=np.float32)
        for share in SHARES:
            order = np.argsort(-mixed(first, rerank, share=share), kind="stable")
            ranked = [candidates.relevant[row] for row in order]
            values[share].append(ndcg(ranked, missing=candidates.missing))
    return {share: float(np.mean(scores)) for share, scores in values.items()}
