"""`python -m tests.bench.service.served DATA_DIR`: the application around a stub engine, under uvicorn as in `serve`.

Asked on standard input, it tells figures on standard output: a line `reset` begins to count anew, a line `told` answers
with one line of JSON, and the end of the input ends it.
"""

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn

from app.answering.conversations.conversations import Conversations
from app.answering.fitting import Fitting
from app.answering.generating.cached_tokenizer import CachedTokenizer
from app.answering.question import AnswerDefaults
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.answering.verification.metered_models import Verification
from app.api.application import create_app
from app.db.answer_citations import AnswerCitationRepository
from app.db.chunks import ChunkRepository
from app.db.conversations import ConversationRepository
from app.server.bootstrap import build
from app.server.process import freeze_loaded_objects
from app.server.state import State
from app.settings import Settings
from app.telemetry.logs import configure_logging
from app.types import DEFAULT_TENANT
from generation.ports import Tokenizer
from retrieval.search import Search
from tests.app.answering.answerers import make_answerer
from tests.app.server.stations import state_with, stations
from tests.bench.service.library import fill, paragraphs_of
from tests.bench.service.stations import LoopLag, Statements, Stopwatch
from tests.bench.service.stub_engine import StubEngine
from tests.generation.fakes import LetterTokenizer
from tests.retrieval.fakes import HashingEmbedder
from tests.server import ADMIN_KEY

_DIMENSIONS = 384  # the default embedder's


@contextmanager
def serving(
    data_dir: Path, *, chunks: int, corpus: Path | None = None, watch: Stopwatch | None = None, small: bool = False
) -> Iterator[State]:
    """The application as `serve` assembles it by default, the engine and the embedder replaced.

    Args:
        data_dir: Filled with `chunks` chunks unless it holds a database.
        chunks: How many.
        corpus: Where their text comes from, see `library`.
        watch: Times the stations, where given.
        small: Count letters instead of the generator's tokens, for which its files must be there.
    """
    filled = (data_dir / "footnote.db").exists()
    settings = Settings(data_dir=data_dir, admin_key=ADMIN_KEY, _env_file=None)
    embedder = HashingEmbedder(dim=_DIMENSIONS, max_tokens=256)
    tokenizer: Tokenizer = CachedTokenizer(LetterTokenizer() if small else _tokenizer(settings))
    with build(settings, with_models=False) as state:
        if not filled:
            fill(state, embedder, paragraphs_of(corpus, chunks), tenant_id=DEFAULT_TENANT)
        engine = StubEngine(tokenizer, context_window=32_768 if small else 8192)
        ledger = state.usage.ledger
        if watch is not None:
            ledger = watch.timed(ledger, "ledger", "reserve", "settle", "bill")
            tokenizer = watch.timed(tokenizer, "tokenizer", "encode", "count")
            state = state_with(  # noqa: PLW2901 - the same one, watched
                state, authenticator=watch.timed(state.access.authenticator, "authenticate", "caller"), ledger=ledger
            )
        models = stations(state, engine, tokenizer=tokenizer, embedder=embedder)
        store, index, lexical = ChunkRepository(state.database), models.index, models.lexical
        citations = AnswerCitationRepository(state.database, clock=ledger.seconds)
        if watch is not None:
            store = watch.timed(store, "store", "holds", "chunks", "headed_texts")
            lexical = watch.timed(lexical, "lexical", "search_text")
            citations = watch.timed(citations, "citations", "record")
            index = watch.timed(index, "dense", "search_vector")
        finder = Finder(search=Search(index, lexical, store), vectors=QuestionVectors(embedder))
        if watch is not None:
            finder = watch.timed(finder, "find", "find")
        fitting = Fitting(state.corpus.contents)
        answerer = make_answerer(
            finder=finder,
            engine=engine,
            tokenizer=tokenizer,
            contents=state.corpus.contents,
            ledger=ledger,
            limits=_limits(settings, small=small),
            verification=Verification(embedder=embedder),
            conversations=Conversations(
                ConversationRepository(state.database),
                count_tokens=tokenizer.count,
                history_tokens=settings.history_tokens,
            ),
            citations=citations,
            fitting=fitting if watch is None else watch.timed(fitting, "fit", "fit"),
        )
        try:
            yield state_with(state, models=replace(models, answerer=answerer))
        finally:
            engine.close()


def _limits(settings: Settings, *, small: bool) -> AnswerDefaults:
    """The settings' own, by which nothing is refused for want of evidence: the stand-in for an embedder knows none."""
    return AnswerDefaults(
        max_context_tokens=settings.max_context_tokens * (4 if small else 1),
        max_output_tokens=settings.max_output_tokens,
        min_evidence=-1.0,
        highlight_tokens=settings.highlight_tokens * (4 if small else 1),
        max_waiting=settings.max_waiting,
    )


def _tokenizer(settings: Settings) -> Tokenizer:
    from app.models.folder import resolve
    from generation.tokenizer import ChatTokenizer

    return ChatTokenizer.load(resolve(settings.generator, models_dir=settings.models_dir))


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service.served", description=__doc__)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--corpus", type=Path, default=None)
    parser.add_argument("--stations", action="store_true", help="time each station; it costs a little itself")
    chosen = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    configure_logging(level="info", json=True)  # a line a request, as `footnote serve` does
    watch, said, lag = (Stopwatch() if chosen.stations else None), Statements(), LoopLag()
    with serving(chosen.data_dir, chunks=chosen.chunks, corpus=chosen.corpus, watch=watch) as state:
        freeze_loaded_objects()  # as `app.server.model_loading` does
        app = create_app(lambda: nullcontext(state), version="0")
        if watch is not None:
            said.listen()
        config = uvicorn.Config(
            app, http="h11", log_config=None, access_log=False, port=chosen.port, timeout_graceful_shutdown=10
        )
        server = _Watched(config, lag)
        threading.Thread(target=_converse, args=(server, watch, said, lag), daemon=True).start()
        server.run()


class _Watched(uvicorn.Server):
    """Beats in the loop that serves."""

    def __init__(self, config: uvicorn.Config, lag: LoopLag) -> None:
        super().__init__(config)
        self._lag = lag

    async def main_loop(self) -> None:
        beating = asyncio.create_task(self._lag.watch())
        await super().main_loop()
        beating.cancel()


def _converse(server: uvicorn.Server, watch: Stopwatch | None, said: Statements, lag: LoopLag) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    for line in sys.stdin:
        match line.split():
            case ["reset"]:
                cpu, wall = time.process_time(), time.perf_counter()
                lag.late.clear()
                said.said.clear()
                if watch is not None:
                    watch.reset()
            case ["told", asks]:
                figures: dict[str, Any] = {
                    "server_cpu_ms_per_ask": round(1000 * (time.process_time() - cpu) / int(asks), 2),
                    "server_cores": round((time.process_time() - cpu) / (time.perf_counter() - wall), 2),
                    "loop_lag": lag.told(),
                }
                if watch is not None:
                    figures["statements_per_ask"] = {
                        word: round(count / int(asks), 2) for word, count in sorted(said.said.items())
                    }
                    figures["stations"] = watch.told(int(asks))
                print("figures", json.dumps(figures), flush=True)
    server.should_exit = True


if __name__ == "__main__":
    main()
