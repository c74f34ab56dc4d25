"""`python -m app.tuning.evidence_reader.pack SETS PACK`: puts what a training reads into one file of a few megabytes.

PACK has the groups that the training here would make of SETS, in parts: `mixture` and `pairs` train; `held-back` and
`near-misses` are of documents held back; each set of `--measure` is a part of its own. `from_pack` trains from it.
"""

import argparse
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from app.models.folder import resolve
from app.settings import DEFAULT_EMBEDDER, load_settings
from app.tuning.evidence_reader.groups import Group, Grouper, Shown, View, heading, readings_of
from app.tuning.evidence_reader.mixture import RULES, Source, folder_of, order, source_of, sources
from app.tuning.evidence_reader.near_misses import cases_of
from app.tuning.evidence_reader.packed import HELD_BACK, MIXTURE, NEAR_MISSES, PAIRS, Pack
from retrieval.plain_tokenizer import plain_tokenizer


def parts_of(
    found: Sequence[Source], tokenizer: Any, *, passes: Mapping[str, float], near: int, seeds: Sequence[int]
) -> dict[str, Iterator[Group]]:
    """The groups that train, each made when it is taken.

    Args:
        found: The sets.
        tokenizer: A `tokenizers.Tokenizer` of the BERT kind without truncation.
        passes: Of each part, `MIXTURE` and `PAIRS`.
        near: Passages besides the right one.
        seeds: For each of them the groups that a training with it reads, one after the other: another one draws other
            passages beside a question.
    """

    def made(part: str) -> Iterator[Group]:
        for seed in seeds:
            grouper = Grouper(found, tokenizer, seed=seed, near=near)
            for at, one in enumerate(order(found, passes=passes[part], seed=seed, pairs=part == PAIRS)):
                if (group := grouper.group(at, *one)) is not None:
                    yield group

    return {part: made(part) for part in passes}


def near_misses_of(source: Source, tokenizer: Any, *, most: int) -> Iterator[Group]:
    """At most `most` questions of a source, each with all windows of its own passage below its title."""
    spans = {(one.example.question, one.passage): one.spans for one in source.questions}
    for case in cases_of(source, most=most):
        told = spans[case.question, case.passage] if case.golds else ()
        shown = Shown(source.text(case.passage), told).below(heading(source, case.passage, 2))
        if readings := readings_of(tokenizer, case.question, shown):
            yield Group(View(tuple(readings)), None)


def main(arguments: Iterable[str] | None = None) -> None:
    """Make the groups and write the pack."""
    parser = argparse.ArgumentParser(prog="python -m app.tuning.evidence_reader.pack", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with the question sets, those that train in it or in `train`")
    parser.add_argument("pack", type=Path)
    parser.add_argument("--passes", type=float, default=0.5, help="of the mixture, with each seed")
    parser.add_argument("--pairs", type=float, default=1.0, help="passes of pairs that people wrote, with each seed")
    parser.add_argument("--near", type=int, default=2, help="passages besides the right one")
    parser.add_argument("--seeds", type=int, nargs="+", default=[41, 43])
    parser.add_argument("--sets", nargs="+", default=list(RULES), help="train on these alone")
    parser.add_argument("--held", type=int, default=1200, help="questions held back, of all sets together")
    parser.add_argument("--measure", nargs="*", default=[], help="sets that measure near misses")
    parser.add_argument("--questions", type=int, default=1000, help="of each part of near misses")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    console = Console(highlight=False)
    tokenizer: Any = plain_tokenizer(Path(resolve(DEFAULT_EMBEDDER, models_dir=load_settings().models_dir)))
    passes = {MIXTURE: chosen.passes, PAIRS: chosen.pairs}
    parts = parts_of(
        sources(chosen.data, names=chosen.sets), tokenizer, passes=passes, near=chosen.near, seeds=chosen.seeds
    )
    held = sources(chosen.data, names=chosen.sets, held_back=True)
    others = parts_of(held, tokenizer, passes={MIXTURE: 1.0}, near=chosen.near, seeds=chosen.seeds[:1])
    parts[HELD_BACK] = itertools.islice(others[MIXTURE], chosen.held)
    written = [source for source in held if source.rules.lacking and source.questions and source.lacking]
    parts[NEAR_MISSES] = (
        group
        for source in written
        for group in near_misses_of(source, tokenizer, most=chosen.questions // len(written))
    )
    for name in chosen.measure:
        source = source_of(folder_of(chosen.data, name), held_back=True)
        parts[name] = near_misses_of(source, tokenizer, most=chosen.questions)
    shown = {name: track(groups, name, console=console, transient=True) for name, groups in parts.items()}
    specials = (tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]"))
    pack = Pack.of(shown, specials=specials)
    pack.write(chosen.pack)
    counts = ", ".join(f"{name} {len(numbers)}" for name, numbers in pack.parts.items())
    console.print(f"{chosen.pack.name}: {chosen.pack.stat().st_size / 1e6:.2f} MB; groups: {counts}")


if __name__ == "__main__":
    main()
