"""`python -m app.tuning.span_reader.run SETS OUT`: trains the default span reader, or resumes its training.

On several cores one process for each is faster than threads:
`torchrun --nproc-per-node 2 -m app.tuning.span_reader.run SETS OUT --threads 1`.
When the last step is done the reader is calibrated on the articles held back and written beside its model card.
"""

import argparse
import itertools
import json
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.models.catalog import ALL_MINILM_L6_V2
from app.models.folder import resolve
from app.models.span_reader import write_reader_manifest
from app.settings import DEFAULT_EMBEDDER, load_settings
from app.tuning.adapter.packs import Corpus
from app.tuning.adapter.run import corpus_of, joined
from app.tuning.span_reader.calibration import Calibrated, calibrate, marker_of
from app.tuning.span_reader.card import card
from app.tuning.span_reader.pairs import batches, pairs_of
from app.tuning.span_reader.training import Recipe, Target, Trainer, start, target_of, trained_weights
from retrieval.span_model import SpanModel

SETS = ("squadshift-new-wiki", "nq-gold", "hotpotqa-train-100", "musique-train-100", "tatqa-dev")
_NAME = "span-minilm-l6"
_SHOWN, _SAVED = 10, 50


def corpora(data: Path, *, seed: int, held_back: bool = False) -> list[Corpus]:
    """The training sets under `data`, without the articles held back, or with the questions about only those."""
    return [corpus_of(data / name, seed=seed, held_back=held_back) for name in SETS]


def endless(found: list[Corpus], tokenizer: Any, *, size: int, seed: int) -> Iterator[list[Target]]:
    """Yields batches of successive passes; each pass draws new negatives."""
    while True:
        random_ = random.Random(seed)  # noqa: S311  # nothing secret is drawn
        pairs = (pair for corpus in found for pair in pairs_of(corpus, random_=random_))
        targets = [target for pair in pairs if (target := target_of(tokenizer, pair)) is not None]
        yield from batches(targets, size=size, random_=random_)
        seed += 1


def publish(model: SpanModel, out: Path, *, recipe: Recipe, trained: Iterable[Corpus], calibrated: Calibrated) -> None:
    """Writes the trained weights, the manifest with their calibration, and the model card.

    Raises:
        ValueError: A weight overflows half precision.
        OSError: The folder cannot be written.
    """
    from retrieval.span_reader import save_reader

    save_reader(trained_weights(model), out)
    calibration = calibrated.calibration
    write_reader_manifest(
        out,
        name=_NAME,
        base=ALL_MINILM_L6_V2,
        licence=ALL_MINILM_L6_V2.licence,
        slope=calibration.slope,
        bias=calibration.bias,
        threshold=calibration.threshold,
    )
    told = card(base=ALL_MINILM_L6_V2, recipe=recipe, trained=trained, calibrated=calibrated)
    (out / "README.md").write_text(told, encoding="utf-8")


def main(arguments: Iterable[str] | None = None) -> None:
    """Trains with a progress line every few steps, calibrates, and writes the reader."""
    import torch
    from tokenizers import Tokenizer

    parser = argparse.ArgumentParser(prog="python -m app.tuning.span_reader.run", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with the training sets")
    parser.add_argument("out", type=Path, help="folder for the reader; training goes on from what it holds")
    parser.add_argument("--steps", type=int, default=Recipe().steps)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    console = joined(chosen.threads)
    recipe = Recipe(steps=chosen.steps)
    chosen.out.mkdir(parents=True, exist_ok=True)
    base = Path(resolve(DEFAULT_EMBEDDER, models_dir=load_settings().models_dir))
    tokenizer: Any = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    trainer = Trainer(start(base, recipe), recipe)
    state = chosen.out / "state.pt"
    if state.exists():
        trainer.load_state(state)
        console.print(f"going on at step {trainer.step}")
    training = corpora(chosen.data, seed=recipe.seed)
    stream = endless(training, tokenizer, size=recipe.batch, seed=recipe.seed)
    upcoming = itertools.islice(stream, trainer.step, None)
    first, losses, began = trainer.step, [], time.perf_counter()
    for loss in trainer.run(upcoming):
        losses.append(loss)
        if trainer.step % _SHOWN == 0:
            pace = (trainer.step - first) * recipe.batch / (time.perf_counter() - began)
            recent = losses[-50:]
            console.print(f"step {trainer.step} loss {sum(recent) / len(recent):.3f} {pace:.1f} pairs/s")
        if not console.quiet and (trainer.step % _SAVED == 0 or trainer.step == recipe.steps):
            trainer.save_state(state)
    if console.quiet:
        return
    held = corpora(chosen.data, seed=recipe.seed, held_back=True)
    calibrated = calibrate(held, marker_of(trainer.model, tokenizer), seed=recipe.seed)
    console.print(json.dumps(asdict(calibrated)), soft_wrap=True)
    publish(trainer.model, chosen.out, recipe=recipe, trained=training, calibrated=calibrated)


if __name__ == "__main__":
    main()
