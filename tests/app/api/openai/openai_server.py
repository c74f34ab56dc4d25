"""The application on a loopback port for OpenAI's own client: a scripted model with probabilities, a small embedder."""

import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import uvicorn

from app.answering.question import AnswerDefaults
from app.api.application import create_app
from app.server.state import State
from app.types import Role
from generation.config import EngineConfig
from generation.engine import LocalEngine
from generation.sequence import SequenceState
from generation.step import Sample
from generation.types import GenerationRequest, ModelInfo, TokenLogprob
from tests.app.evaluation.application import Unconstrained
from tests.faults.metered import metered
from tests.generation.fakes import EOS, LetterTokenizer, Plan, ScriptedRunner
from tests.server import ADMIN_KEY

SAYS = "Forty ships. [1]"
SHOWN = "Forty ships.[1]"  # the marker closes up to the sentence it follows
LOGPROB, RUNNER_UP = math.log(0.75), math.log(0.25)
LIMITS = AnswerDefaults(max_context_tokens=2000, max_output_tokens=200, min_evidence=0.1, max_waiting=8)


class ProbableRunner(ScriptedRunner):
    """Says `SAYS`, each letter with a probability of 0.75; fails in the middle of prompts that ask it to."""

    def __init__(self) -> None:
        super().__init__(SAYS, on_allocate=self._remember)
        self.requests: list[GenerationRequest] = []

    def run(self, plan: Plan, *, meanwhile: Callable[[], None]) -> list[Sample]:
        samples = []
        for sample, work in zip(
            super().run(plan, meanwhile=meanwhile), [work for work in plan if work.sampled], strict=True
        ):
            if len(work.sequence.generated) >= 6 and "explode" in LetterTokenizer().decode(
                work.sequence.request.prompt
            ):
                samples.append(Sample(sample.sequence, (), ()))  # what a model that gives no numbers ends in
                continue
            wanted = work.sequence.request.sampling.logprobs
            top = tuple((token, value) for token, value in ((sample.tokens[0], LOGPROB), (EOS, RUNNER_UP)))
            told = None if wanted is None else TokenLogprob(sample.tokens[0], LOGPROB, top[:wanted])
            samples.append(Sample(sample.sequence, sample.tokens, (told,)))
        return samples

    def _remember(self, sequence: SequenceState) -> None:
        self.requests.append(sequence.request)


@dataclass(slots=True)
class Service:
    """A running application."""

    url: str
    state: State
    runner: ProbableRunner
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.http = self.client(ADMIN_KEY)

    def key(self, role: Role, *, tenant: str = "default", collections: tuple[str, ...] | None = None) -> str:
        """The secret of a new key."""
        _, secret = self.state.access.keys.create(
            tenant_id=tenant, user_id=f"{tenant}-{role}", name=role, role=role, collections=collections, expires_at=None
        )
        return secret

    def client(self, secret: str) -> httpx.Client:
        """A client with this key; the caller closes it."""
        headers = {"Authorization": f"Bearer {secret}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=60)  # longer than an ingestion

    def upload(self, text: str, name: str, **fields: object) -> str:
        """A document's id once it is indexed."""
        body = self.http.post("/v1/documents", json={"text": text, "filename": name, "wait": 20, **fields}).json()
        assert body["status"] == "indexed", body
        return str(body["id"])


@contextmanager
def openai_server(data_dir: Path) -> Iterator[Service]:
    """Serve an application over `data_dir`; stopped at the end."""
    runner = ProbableRunner()
    engine = LocalEngine(
        runner,
        LetterTokenizer(),
        EngineConfig(model="scripted", max_running=8),
        info=ModelInfo(model="scripted", revision="0", context_window=8192, device="cpu", dtype="float32"),
        eos_ids=frozenset({EOS}),
        vocab_size=0x110000,
        constraints=Unconstrained(),
    )
    with metered(data_dir, engine=engine, limits=LIMITS, remembers=True) as state:
        app = create_app(lambda: nullcontext(state), version="0")
        config = uvicorn.Config(
            app, http="h11", log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5
        )
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="openai-server")
            thread.start()
            service = Service(f"http://127.0.0.1:{listener.getsockname()[1]}", state, runner)
            try:
                _await(service)
                yield service
            finally:
                service.http.close()
                server.should_exit = True
                thread.join(30)
        assert not thread.is_alive(), "the server did not end"


def _await(service: Service) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if service.http.get("/healthz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.02)
    raise AssertionError("the server does not listen")
