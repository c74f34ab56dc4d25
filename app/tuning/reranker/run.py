"""Fine-tunes the small reranker from the embedder's own weights: `python -m app.tuning.reranker.run --help`.

A cross-encoder of the embedder's first layers learns to put the passage that answers a question before
the near misses of the first stage (listwise softmax; Nogueira and Cho 2019, arXiv:1901.04085). Documents
whose title falls into the held-apart share never train, neither as answers nor as near misses; the
questions they answer measure what was learnt. The same arguments give the same model on one machine.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from app.tuning.reranker.collection import Collection, Question, divide, read_collection
from app.tuning.reranker.examples import Candidates, Embed, Example, candidates, mine
from app.tuning.reranker.training import Recipe, Trainer, measure, save, start

_NAMES = ("torch", "transformers", "sentence-transformers", "tokenizers", "numpy")


def main(arguments: Sequence[str] | None = None) -> None:
    """Mines examples, trains, measures and saves; an interrupted run resumes from its last checkpoint."""
    options = _parser().parse_args(arguments)
    recipe = Recipe(**{field.name: getattr(options, field.name) for field in fields(Recipe)})
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    collections = [read_collection(folder) for folder in options.data]
    embed = None if options.lexical else _embedder(options.base)

    examples, tests = _divided(collections, share=options.held_apart, pool=options.pool, most=options.most, embed=embed)
    trainer = Trainer(start(options.base, recipe), recipe, device=options.device)
    options.out.mkdir(parents=True, exist_ok=True)
    state = options.out / "training.pt"
    if state.exists():
        trainer.load_state(state)
        _say(f"going on from step {trainer.step}")
    _train(trainer, examples, state=state, every=options.checkpoint, steps=recipe.steps)

    results = {name: measure(trainer.model, found) for name, found in tests.items() if found}
    for name, result in results.items():
        _say(f"{name}: " + ", ".join(f"{share:g}: {value:.4f}" for share, value in result.items()))
    save(trainer.model, options.out / "model")
    card = _card(recipe, collections, examples, tests, results, options)
    (options.out / "model" / "README.md").write_text(card, encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m app.tuning.reranker.run", description=__doc__)
    parser.add_argument("--data", type=Path, action="append", required=True, metavar="DIR", help="a collection")
    parser.add_argument("--base", type=Path, required=True, metavar="DIR", help="the embedder's folder")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="checkpoint, model and card")
    parser.add_argument("--held-apart", type=float, default=0.3, help="share of the documents that only measure")
    parser.add_argument("--pool", type=int, default=30, help="near misses: the first so many of each ranking")
    parser.add_argument("--most", type=int, default=100, help="questions of each collection to measure on")
    parser.add_argument("--lexical", action="store_true", help="BM25 alone as first stage: nothing is embedded")
    parser.add_argument("--checkpoint", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=0, help="of the arithmetic; 0 leaves the choice to torch")
    for field in fields(Recipe):
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(name, type=type(field.default), default=field.default)
    return parser


def _divided(
    collections: Sequence[Collection], *, share: float, pool: int, most: int, embed: Embed | None
) -> tuple[list[Example], dict[str, list[Candidates]]]:
    examples: list[Example] = []
    tests = {}
    for collection in collections:
        trains, measures = divide(collection, share=share)
        mined = mine(collection, trains, share=share, pool=pool, embed=embed)
        tests[collection.name] = candidates(collection, _spread(measures, most), first=20, embed=embed)
        examples += mined
        _say(f"{collection.name}: {len(mined)} examples, {len(tests[collection.name])} questions to measure on")
    return examples, tests


def _spread(questions: Sequence[Question], most: int) -> list[Question]:
    """At most `most` questions, evenly spaced over the collection."""
    step = max(1.0, len(questions) / most)
    return [questions[int(at * step)] for at in range(min(most, len(questions)))]


def _train(trainer: Trainer, examples: Sequence[Example], *, state: Path, every: int, steps: int) -> None:
    begun, first, recent = time.perf_counter(), trainer.step, list[float]()
    for loss in trainer.run(examples):
        recent = [*recent[-49:], loss]
        if trainer.step % 10 == 0 or trainer.step == steps:
            pace = (time.perf_counter() - begun) / (trainer.step - first)
            left = (steps - trainer.step) * pace / 60
            mean = sum(recent) / len(recent)
            _say(f"step {trainer.step} of {steps}, loss {mean:.3f}, {pace:.1f} s a step, {left:.0f} min left")
        if trainer.step % every == 0 or trainer.step == steps:
            trainer.save_state(state)


def _embedder(base: Path) -> Embed:
    """Embeds texts with the base model as unit vectors."""
    from retrieval.encoder import SentenceEncoder

    encoder = SentenceEncoder.load(str(base))

    def embed(texts: Sequence[str]) -> Any:
        def progress(done: int) -> None:
            if done * 10 // len(texts) != (done - 1) * 10 // len(texts):
                _say(f"embedded {done} of {len(texts)}")

        return encoder.embed_documents(texts, on_batch=progress)

    return embed


def _card(
    recipe: Recipe,
    collections: Sequence[Collection],
    examples: Sequence[Example],
    tests: dict[str, list[Candidates]],
    results: dict[str, dict[float, float]],
    options: argparse.Namespace,
) -> str:
    """The model card: purpose, training data and results."""
    shares = sorted(next(iter(results.values()), {}))
    lines = [
        "# A small reranker",
        "",
        f"A cross-encoder: the first {recipe.layers} layers of {options.base.name}, fine-tuned with a head that scores",
        f"question and passage read together, at most {recipe.max_tokens} tokens. It belongs to Footnote, made by",
        "`python -m app.tuning.reranker.run`. The base model is under the Apache License 2.0; the collections below",
        "keep their own terms.",
        "",
        f"{len(examples)} examples; near misses by {'BM25' if options.lexical else 'BM25 and the embedder'}.",
        "",
        "| collection | SHA-256 of its files | measured on |",
        "|---|---|---|",
        *(f"| {c.name} | `{c.sha256}` | {len(tests[c.name])} questions |" for c in collections),
        "",
        f"{options.held_apart:.0%} of the documents, chosen by the hash of their titles, never trained. On questions",
        "they answer, nDCG@10 of the first 20 of the first stage, by the share of the rerank score in the mixture",
        "of both (0 is the first stage, 1 the reranker alone):",
        "",
        "| collection | " + " | ".join(f"{share:g}" for share in shares) + " |",
        "|---|" + "---|" * len(shares),
        *(
            f"| {name} | " + " | ".join(f"{result[share]:.3f}" for share in shares) + " |"
            for name, result in results.items()
        ),
        "",
        "```json",
        json.dumps(
            {
                "recipe": asdict(recipe),
                "held_apart": options.held_apart,
                "pool": options.pool,
                "python": platform.python_version(),
                **{name: version(name) for name in _NAMES},
            },
            indent=2,
        ),
        "```",
        "",
    ]
    return "\n".join(lines)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
