"""The application around a scripted model, serving the page: to the tests, and to somebody who looks at it.

python -m tests.web.served [--data FOLDER] [--port N]
"""

import argparse
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from app.answering.conversations.conversations import Conversations
from app.answering.question import AnswerDefaults
from app.answering.quoting.passage_reader import PassageReader
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.api.application import create_app
from app.db.answer_citations import AnswerCitationRepository
from app.db.chunks import ChunkRepository
from app.db.conversations import ConversationRepository
from app.documents.intake import Intake
from app.documents.passwords import Passwords
from app.server.drain import Drain
from app.server.http_server import Server, configuration
from app.server.state import State
from app.settings import Settings
from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.sequence import SequenceState
from generation.step import Sample
from generation.types import ModelInfo
from retrieval.ports import Vectors
from retrieval.search import Search
from tests.app.answering.answerers import QuotesAs, make_answerer
from tests.app.answering.pointing_reader import PointingReader
from tests.app.evaluation.application import Unconstrained
from tests.app.server.stations import state_with
from tests.faults.metered import MODEL, metered
from tests.generation.fakes import EOS, LetterTokenizer, Plan, ScriptedRunner
from tests.retrieval.fakes import HashingEmbedder
from tests.server import ADMIN_KEY
from tests.web.made_documents import ANSWERS, AT_LENGTH, OTHERWISE, SLOWLY

LIMITS = AnswerDefaults(max_context_tokens=6000, max_output_tokens=4000, min_evidence=0.05, max_waiting=8)
POINTED = "Forty ships"
_LETTERS, _SECONDS, _SLOW_SECONDS = 6, 0.002, 0.02


class ScriptRunner(ScriptedRunner):
    """Says what is written for a word of the question, some letters a step; one, and slowly, where it says `SLOWLY`."""

    def run(self, plan: Plan, *, meanwhile: Callable[[], None]) -> list[Sample]:
        del meanwhile
        samples = []
        pause = _SECONDS
        for work in plan:
            if work.sampled:
                question = self._question(work.sequence)
                says = next((text for word, text in ANSWERS.items() if word in question), OTHERWISE)
                at = len(work.sequence.generated)
                letters = 1 if SLOWLY in question else _LETTERS
                tokens = tuple(map(ord, says[at : at + letters])) or (EOS,)
                samples.append(Sample(work.sequence, tokens, (None,) * len(tokens)))
                pause = max(pause, _SLOW_SECONDS if SLOWLY in question else 0)
        time.sleep(pause)
        return samples

    @staticmethod
    def _question(sequence: SequenceState) -> str:
        asked = LetterTokenizer().decode(sequence.request.prompt).rpartition("Question:")[2]
        return asked.partition("\n")[0].lower()  # below it stand sentences to look at again


class DeliberateEmbedder(HashingEmbedder):
    """Waits with a question that says `AT_LENGTH` while the file `held` is there, and leaves the file `begun` then."""

    def __init__(self, held: Path, begun: Path) -> None:
        super().__init__(max_tokens=64)
        self._held, self._begun = held, begun

    def embed_query(self, text: str) -> Vectors:
        while AT_LENGTH in text.casefold() and self._held.exists():
            self._begun.touch()
            time.sleep(_SECONDS)
        return super().embed_query(text)


def held(data_dir: Path) -> Path:
    """The file that keeps questions with `AT_LENGTH` waiting."""
    return data_dir.parent / "held"


def begun(data_dir: Path) -> Path:
    """The file that says that such a question waits."""
    return data_dir.parent / "begun"


@contextmanager
def application(data_dir: Path, *, quotes: QuotesAs = QuotesAs.NOTHING) -> Iterator[State]:
    """A state over `data_dir` that ingests, answers in conversations, keeps books and compares them.

    Where `quotes` answer, a reader points at `POINTED` for them.
    """
    tokenizer, embedder, passwords = LetterTokenizer(), DeliberateEmbedder(held(data_dir), begun(data_dir)), Passwords()
    engine = LocalEngine(
        ScriptRunner(),
        tokenizer,
        EngineConfig(model=MODEL, step_tokens=20_000),
        info=ModelInfo(model=MODEL, revision="0", context_window=40_000, device="cpu", dtype="float32"),
        eos_ids=frozenset({EOS}),
        vocab_size=0x110000,
        constraints=Unconstrained(),
    )
    with metered(data_dir, engine=engine, limits=LIMITS, passwords=passwords) as state:
        models, ledger = state.serving.models, state.usage.ledger
        assert models is not None
        intake = Intake(
            documents=state.corpus.documents,
            collections=state.corpus.collections,
            files=state.corpus.files,
            passwords=passwords,
            wake=state.serving.wake,
            indexes=state.serving,
        )
        search = Search(models.index, models.lexical, ChunkRepository(state.database))
        answerer = make_answerer(
            finder=Finder(search=search, vectors=QuestionVectors(embedder)),
            engine=engine,
            tokenizer=tokenizer,
            contents=state.corpus.contents,
            ledger=ledger,
            limits=LIMITS,
            conversations=Conversations(
                ConversationRepository(state.database),
                count_tokens=tokenizer.count,
                history_tokens=800,
                asked=state.history.asked,
            ),
            citations=AnswerCitationRepository(state.database, clock=ledger.seconds),
            quotes=quotes,
            passage_reader=None
            if quotes is QuotesAs.NOTHING
            else PassageReader(embedder=embedder, reader=PointingReader(POINTED)),
        )
        state.serving.models = replace(models, answerer=answerer)
        yield state_with(state, intake=intake)


def main() -> None:
    """Serve until stopped, and say where and with which key."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a data dir; a new one unless told otherwise")
    parser.add_argument("--port", type=int, default=8765)
    given = parser.parse_args()
    data_dir = given.data or Path(tempfile.mkdtemp(prefix="footnote-web-"))
    data_dir.mkdir(parents=True, exist_ok=True)
    drain = Drain(seconds=2)
    app = create_app(lambda: application(data_dir), version="0", drain=drain)
    with socket.create_server(("127.0.0.1", given.port), backlog=128) as listener:
        print(f"http://127.0.0.1:{given.port}/#key={ADMIN_KEY}", flush=True)
        Server(configuration(app, Settings(_env_file=None)), drain, state=lambda: app.state.footnote).run(
            sockets=[listener]
        )


if __name__ == "__main__":
    main()
