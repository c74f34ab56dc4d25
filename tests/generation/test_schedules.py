"""Whatever the schedule - arrivals, cancellations, evictions, preemptions, drafts - the tokens stay the same."""

from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from generation.host_memory import HostMemory
from generation.memory import Layout
from generation.sequence import SequenceState
from generation.types import FinishReason
from tests.examples import examples
from tests.generation.fakes import RecordingObserver
from tests.generation.recorder import Recorder
from tests.generation.stage import SAMPLED, Asked, Stage, solo_tokens

PLENTY, SHORT = HostMemory(total=100, available=50), HostMemory(total=100, available=5)
ASKED = st.builds(
    Asked,
    family=st.integers(1, 2),
    shared=st.integers(1, 30),
    own=st.integers(0, 12),
    outputs=st.integers(1, 14),
    sampling=st.integers(0, len(SAMPLED) - 1),
    arrives=st.integers(0, 12),
    leaves=st.none() | st.integers(0, 25),
    user=st.sampled_from(["ann", "bob"]),
    priority=st.integers(0, 1),
)


@settings(deadline=None, max_examples=examples(60))
@given(
    requests=st.lists(ASKED, min_size=1, max_size=7),
    capacity_blocks=st.sampled_from([14, 18, 40]),
    max_running=st.integers(1, 4),
    extra_tokens=st.integers(0, 30),
    reuse=st.booleans(),
    drafts=st.booleans(),
    layout=st.sampled_from(["slabs", "pages"]),
    graphs=st.booleans(),
    short=st.lists(st.booleans(), max_size=6),
)
def test_any_schedule_gives_each_sequence_the_tokens_it_gets_alone(
    requests: list[Asked],
    capacity_blocks: int,
    max_running: int,
    extra_tokens: int,
    reuse: bool,
    drafts: bool,
    layout: Layout,
    graphs: bool,
    short: list[bool],
) -> None:
    capture = Recorder() if graphs else None
    stage = Stage(
        capacity_blocks=capacity_blocks,
        max_running=max_running,
        step_tokens=max_running + extra_tokens,
        reuse=reuse,
        drafts=drafts,
        layout=layout,
        capture=capture,
        memory=cycle([SHORT if one else PLENTY for one in short]).__next__ if short else None,
    )
    running: list[tuple[Asked, SequenceState, RecordingObserver]] = []
    turn = 0
    while stage.busy or turn <= max(asked.arrives for asked in requests):
        running += [(asked, *stage.submit(asked)) for asked in requests if asked.arrives == turn]
        for asked, sequence, _ in running:
            if asked.leaves == turn:
                sequence.stream.close()
        stage.turn()
        turn += 1
        assert turn < 2000, "it goes on for ever"
    stage.finisher.close()

    assert len(running) == len(requests)
    assert stage.runner.cache.pool.used == 0
    assert capture is None or capture.trusted
    for asked, _, observer in running:
        done = observer.wait()
        expected = solo_tokens(asked.prompt, asked.params)
        assert done.token_ids == expected[: len(done.token_ids)]
        if asked.leaves is None:
            assert (done.finish_reason, done.token_ids) == (FinishReason.LENGTH, expected)
