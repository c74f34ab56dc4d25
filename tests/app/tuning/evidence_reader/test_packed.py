"""app.tuning.evidence_reader.packed: a pack gives back the groups that it took in, and training from it is the same."""

from dataclasses import replace

import pytest

from app.tuning.evidence_reader.from_pack import maker_of, stage_of
from app.tuning.evidence_reader.groups import Group, Grouper, Reading, View
from app.tuning.evidence_reader.mixture import order, source_of
from app.tuning.evidence_reader.pack import near_misses_of, parts_of
from app.tuning.evidence_reader.packed import MIXTURE, NEAR_MISSES, PAIRS, Pack
from app.tuning.evidence_reader.training import Recipe, Trainer, start
from tests.app.tuning.evidence_reader.shelves import TOKENIZER, base_of, write_set

SPECIALS = (TOKENIZER.token_to_id("[CLS]"), TOKENIZER.token_to_id("[SEP]"))
RECIPE = Recipe(groups=6, learning_rate=1e-3, head_learning_rate=1e-2, near=2)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return source_of(
        write_set(tmp_path_factory.mktemp("sets") / "squad2-train-unans", rooms=7, written=True), held_back=False
    )


@pytest.fixture(scope="module")
def parts(source):
    made = parts_of([source], TOKENIZER, passes={MIXTURE: 0.5, PAIRS: 1}, near=2, seeds=[5])
    return {name: list(groups) for name, groups in made.items()}


@pytest.fixture(scope="module")
def file(parts, source, tmp_path_factory):
    made = tmp_path_factory.mktemp("packs") / "small.pack"
    held = list(near_misses_of(source, TOKENIZER, most=20))
    Pack.of({**parts, NEAR_MISSES: held}, specials=SPECIALS).write(made)
    return made


def without_offsets(group: Group) -> Group:
    """A pack keeps how many tokens of a passage a window shows, not their characters."""

    def bare(reading: Reading) -> Reading:
        return replace(reading, window=replace(reading.window, offsets=((0, 0),) * len(reading.window.offsets)))

    def view(one: View) -> View:
        return replace(one, readings=tuple(map(bare, one.readings)))

    return replace(
        group, asked=view(group.asked), unanswered=None if group.unanswered is None else view(group.unanswered)
    )


def test_every_group_comes_back_as_the_training_here_would_make_it(source, parts, file):
    pack = Pack.read(file)
    grouper = Grouper([source], TOKENIZER, seed=5, near=2)
    asked = order([source], passes=0.5, seed=5)
    made = [group for at, one in enumerate(asked) if (group := grouper.group(at, *one)) is not None]

    assert len(made) > 30
    assert parts[MIXTURE] == made
    for name in (MIXTURE, PAIRS):
        assert [pack.group(number) for number in pack.parts[name]] == [without_offsets(one) for one in parts[name]]
    flags = {(one.unanswered is None, one.paired, len(one.asked.readings)) for one in parts[MIXTURE] + parts[PAIRS]}
    assert len(flags) >= 3
    held = [pack.group(number) for number in pack.parts[NEAR_MISSES]]
    assert {one.asked.answered for one in held} == {True, False}


def test_a_training_from_the_pack_has_the_losses_of_one_from_the_sets(parts, file, tmp_path):
    pack = Pack.read(file)
    base = base_of(tmp_path / "tiny")
    stage = stage_of(pack, "one", f"{MIXTURE},{PAIRS}", recipe=replace(RECIPE, passes=0.4))
    every = parts[MIXTURE] + parts[PAIRS]

    def losses(maker) -> list[float]:
        trainer = Trainer(start(base, RECIPE), RECIPE, steps=stage.steps, half=False)
        return [told.loss for told in trainer.run(maker)]

    chosen = [every[number] for number in stage.order]
    size = RECIPE.groups
    assert losses(maker_of(pack, stage)) == losses(lambda step: chosen[step * size : (step + 1) * size])
    assert stage.steps >= 5


def test_a_stage_goes_through_its_parts_as_often_as_it_says_in_new_orders(file):
    pack = Pack.read(file)
    numbers = list(pack.parts[PAIRS])
    stage = stage_of(pack, "one", PAIRS, recipe=replace(RECIPE, passes=2.5))
    first, second = stage.order[: len(numbers)], stage.order[len(numbers) : 2 * len(numbers)]
    assert sorted(first) == sorted(second) == numbers
    assert first != second
    assert len(stage.order) == round(2.5 * len(numbers))
    for part in (NEAR_MISSES, "squad2-dev", ""):
        with pytest.raises(ValueError, match="no part that trains"):
            stage_of(pack, "one", part, recipe=RECIPE)


@pytest.mark.parametrize("data", [b"", b"{}\n", b"[1]\n", b'{"format": 2}\n', b"\xff\n", "cut"])
def test_what_is_no_pack_is_refused(file, tmp_path, data):
    broken = tmp_path / "broken.pack"
    broken.write_bytes(file.read_bytes()[:-20] if data == "cut" else data)
    with pytest.raises(ValueError, match=r"broken\.pack is no pack"):
        Pack.read(broken)


def test_a_window_of_another_model_is_refused(parts):
    with pytest.raises(ValueError, match="special tokens"):
        Pack.of(parts, specials=(SPECIALS[0], SPECIALS[0]))
