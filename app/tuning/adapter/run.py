"""`python -m app.tuning.adapter.run SETS OUT`: train the adapter of the default generator, or go on where it stopped.

On several cores one process for each is faster than threads:
`torchrun --nproc-per-node 2 -m app.tuning.adapter.run SETS OUT --packs 2 --threads 1`.
"""

import argparse
import hashlib
import itertools
import json
import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from app.answering.generating.prompt_layout import LAYOUT
from app.answering.languages.table import REFUSAL
from app.evaluation.dataset import read_question_set
from app.evaluation.types import QuestionSet
from app.models.adapter import write_adapter_manifest
from app.models.catalog import SMOLLM2_135M_INSTRUCT
from app.models.folder import resolve
from app.settings import DEFAULT_GENERATOR, load_settings
from app.tuning.adapter import examples as made
from app.tuning.adapter.pack import Pack
from app.tuning.adapter.packs import Corpus, Mixture, Packer
from app.tuning.adapter.training import Recipe, Trainer, read, save, start
from generation.tokenizer import ChatTokenizer

SHARES = {
    "squadshift-new-wiki": 0.60,
    "nq-gold": 0.22,
    "hotpotqa-train-100": 0.03,
    "musique-train-100": 0.02,
    "pubmedqa-train": 0.04,
    "scifact-train": 0.03,
    "tatqa-dev": 0.06,
}
_HELD_BACK = 0.05  # of the articles, to see how it goes
_SHOWN, _SAVED = 5, 25


def examples_of(question_set: QuestionSet, *, seed: int) -> list[made.Example]:
    """The examples of one training set."""
    chance = random.Random(seed)  # noqa: S311  # nothing secret is drawn
    if question_set.name == "pubmedqa-train":
        return made.findings(question_set)
    if question_set.name == "scifact-train":
        return made.claims(question_set)
    found = made.spans(question_set) + made.yes_or_no(question_set)
    if question_set.name in ("squadshift-new-wiki", "nq-gold"):
        found += made.descriptions(question_set, random_=chance, share=0.25)
    return found


def corpora(data: Path, *, seed: int, held_back: bool) -> dict[Corpus, float]:
    """The training sets under `data`, without the articles held back, or only those."""
    found = {}
    for name, share in SHARES.items():
        corpus = corpus_of(data / name, seed=seed, held_back=held_back)
        if corpus.examples and not (held_back and name not in ("squadshift-new-wiki", "nq-gold")):
            found[corpus] = share
    return found


def corpus_of(folder: Path, *, seed: int, held_back: bool) -> Corpus:
    """A training set without the articles held back, or with the examples about only those."""
    question_set = read_question_set(folder)
    examples = examples_of(question_set, seed=seed)
    return Corpus(question_set, [one for one in examples if is_held_back(question_set, one) == held_back])


def joined(threads: int) -> Console:
    """Joins the process group that torchrun started, if any; only the first process prints."""
    import torch

    torch.set_num_threads(threads)
    console = Console(highlight=False)
    if torch.distributed.is_torchelastic_launched():
        torch.distributed.init_process_group("gloo")
        console.quiet = torch.distributed.get_rank() > 0
    return console


def packs(data: Path, tokenizer: ChatTokenizer, *, count: int, seed: int, held_back: bool = False) -> list[Pack]:
    """The first `count` packs of a seed."""
    packer = Packer(corpora(data, seed=seed, held_back=held_back), tokenizer=tokenizer, mixture=Mixture(), seed=seed)
    return list(itertools.islice(packer, count))


def judged(model: object, held: Sequence[Pack], refusal: int) -> dict[str, float]:
    """Shares over held-out branches: answered word for word, correctly refused, wrongly refused."""
    import torch

    told = answered = wrong = refused = absent = 0
    loss = 0.0
    with torch.no_grad():
        for pack in held:
            found = read(model, pack)
            loss += float(found.loss) / len(held)
            for branch, right, first in zip(pack.branches, found.right, found.first, strict=True):
                if branch.answer[0] == refusal:
                    absent += 1
                    refused += first == refusal
                else:
                    answered += 1
                    told += right
                    wrong += first == refusal
    return {
        "loss": round(loss, 4),
        "word_for_word": round(told / max(1, answered), 4),
        "refused": round(refused / max(1, absent), 4),
        "wrongly_refused": round(wrong / max(1, answered), 4),
        "answerable": answered,
        "unanswerable": absent,
    }


def is_held_back(question_set: QuestionSet, example: made.Example) -> bool:
    """Whether its article is held out of training for measurement."""
    title = question_set.documents[example.needs[0]].title or example.needs[0]
    digest = hashlib.sha256(f"{question_set.name}\0{title}".encode()).digest()
    return digest[0] / 256 < _HELD_BACK


def main(arguments: Iterable[str] | None = None) -> None:
    """Trains with a progress line every few steps and writes the adapter."""
    import torch

    parser = argparse.ArgumentParser(prog="python -m app.tuning.adapter.run", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with the training sets")
    parser.add_argument("out", type=Path, help="folder for the adapter; training goes on from what it holds")
    parser.add_argument("--steps", type=int, default=Recipe().steps)
    parser.add_argument("--packs", type=int, default=Recipe().packs, help="packs a step")
    parser.add_argument("--seed", type=int, default=Recipe().seed)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    console = joined(chosen.threads)
    recipe = Recipe(steps=chosen.steps, packs=chosen.packs, seed=chosen.seed)
    chosen.out.mkdir(parents=True, exist_ok=True)
    base = Path(resolve(DEFAULT_GENERATOR, models_dir=load_settings().models_dir))
    tokenizer = ChatTokenizer.load(str(base))
    training = packs(chosen.data, tokenizer, count=recipe.steps * recipe.packs, seed=recipe.seed)
    held = packs(chosen.data, tokenizer, count=16, seed=Recipe().seed + 1, held_back=True)
    sizes = [len(pack) for pack in training]
    asked = sum(len(pack.branches) for pack in training)
    console.print(f"{len(training)} packs, {sum(sizes)} tokens, {asked} questions")
    model = start(base, recipe)
    trainer = Trainer(model, recipe)
    state = chosen.out / "state.pt"
    if state.exists():
        trainer.load_state(state)
        console.print(f"going on at step {trainer.step}")
    refusal = tokenizer.encode(REFUSAL)[0]
    began, tokens, losses = time.perf_counter(), 0, []
    for found in trainer.run(training):
        tokens += sum(sizes[(trainer.step - 1) * recipe.packs : trainer.step * recipe.packs])
        losses.append(float(found.loss))
        if trainer.step % _SHOWN == 0:
            pace = tokens / (time.perf_counter() - began)
            console.print(f"step {trainer.step} loss {sum(losses[-20:]) / len(losses[-20:]):.3f} {pace:.0f} tokens/s")
        if console.quiet:  # another process speaks and saves
            continue
        if trainer.step % _SAVED == 0:
            trainer.save_state(state)
        if trainer.step % (4 * _SAVED) == 0 or trainer.step == recipe.steps:
            console.print(json.dumps({"step": trainer.step, **judged(model, held, refusal)}))
            model.train()
    if console.quiet:
        return
    trainer.save_state(state)
    save(model, chosen.out, base=SMOLLM2_135M_INSTRUCT.name)
    write_adapter_manifest(
        chosen.out,
        name="grounded",
        base=SMOLLM2_135M_INSTRUCT,
        prompt_layout=LAYOUT,
        licence=SMOLLM2_135M_INSTRUCT.licence,
    )


if __name__ == "__main__":
    main()
