"""The meter of an answer: the only way from its model calls to the ledger, and where they are stopped.

Each call is reserved on the ledger before a model reads, settled when it ends, and counted for the answer's usage,
which therefore equals the answer's rows.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from app.answering.metering.call_kinds import KINDS, SEVERAL
from app.answering.metering.settler import Settler
from app.answering.metering.token_usage import CountedCall, ModelCall, Purpose, called
from app.answering.prompt import Prompt
from app.answering.question import Question
from app.types import Components, DocumentShare, Reservation, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from generation.errors import GenerationError
from generation.ports import Engine, Stream
from generation.types import Abstention, Constraint, GenerationRequest, SamplingParams


class CallsClosed(Exception):
    """The meter of a question was closed, so no model reads or generates for it any more."""


OnBatch = Callable[[int], None]
"""Called after each batch of a call with the number of tokens read so far; its exceptions end the call."""


class Meter:
    """Meters the model calls of one answer. `close` may be called from any thread, any number of times.

    `ended` is done once it is closed; `started` is the `time.perf_counter` second at which the question was asked.

    >>> meter = meters.of(question)
    >>> with meter.reading(Purpose.RERANK, model=reranker.model, revision=reranker.revision, tokens=90):
    ...     scores = reranker.score(question.text, passages)
    >>> meter.calls
    (ModelCall(purpose=<Purpose.RERANK: 'rerank'>, model='reranker', prompt_tokens=90, ...),)
    """

    def __init__(
        self,
        question: Question,
        *,
        ledger: Ledger,
        engine: Engine,
        tokenizer_revision: str,
        started: float | None = None,
        names_documents: bool = True,
    ) -> None:
        """`tokenizer_revision` is that of the engine's prompts; `started` the second it was asked, now by default.

        Without `names_documents` the ledger is told of no document: those of the question are stored nowhere.
        """
        self._question = question
        self._ledger = ledger
        self._engine = engine
        self._tokenizer_revision = tokenizer_revision
        self._names_documents = names_documents
        self.started = time.perf_counter() if started is None else started
        self._lock = threading.Lock()
        self._begun = Counter[Purpose]()
        self._calls: list[CountedCall] = []
        self._running: list[tuple[Stream, Settler]] = []
        self._server_stops = False
        self.ended: Future[None] = Future()

    @property
    def closed(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.ended.done()

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """The calls so far that read or wrote a token, in the order in which they were reserved."""
        with self._lock:
            return called(*(counted.call for counted in self._calls))

    @property
    def aborted(self) -> UsageStatus:
        """The status of a call that ends because the meter was closed: by the client, the deadline or the server."""
        by_server = self._server_stops or self._question.late
        return UsageStatus.SERVER_ABORT if by_server else UsageStatus.CLIENT_ABORT

    def again(self, question: Question) -> "Meter":
        """The meter of a further answer from the same sources, `question` being its choice."""
        return Meter(
            question,
            ledger=self._ledger,
            engine=self._engine,
            tokenizer_revision=self._tokenizer_revision,
            started=self.started,
            names_documents=self._names_documents,
        )

    def require_open(self) -> None:
        """Check that somebody still waits for the answer.

        Raises:
            CallsClosed: The meter was closed.
        """
        if self.closed:
            raise CallsClosed

    @contextmanager
    def reading(
        self,
        purpose: Purpose,
        *,
        model: str,
        revision: str,
        tokens: int,
        documents: tuple[DocumentShare, ...] = (),
    ) -> Iterator[OnBatch]:
        """Meter the call of a model that only reads, which the body of the `with` statement makes.

        It settles as completed with all its tokens, and as an error where the body raises one. The body may call the
        result after each batch: `CallsClosed` then ends a call that nobody waits for, which settles as an abort with
        the tokens that it has read.

        Args:
            purpose: What the call is for.
            model: Name of the model.
            revision: Revision of its tokenizer.
            tokens: Tokens that it will read.
            documents: The documents whose passages it reads, with their tokens; of an ended call nothing is theirs.

        Raises:
            BudgetExceeded, StoreUnavailable, StorageFull: Nothing was reserved, and the body did not run.
        """
        reservation = self._reservation(
            purpose, model=model, revision=revision, input_tokens=tokens, documents=documents
        )
        with self._ledger.metered(reservation) as metered:
            counted = self._counted(purpose, model)

            def on_batch(read: int) -> None:
                counted.read(read)
                if self.closed:
                    metered.input_tokens, metered.status_on_error = read, self.aborted
                    raise CallsClosed

            try:
                yield on_batch
            finally:
                counted.read(tokens if metered.input_tokens is None else metered.input_tokens)

    def generating(
        self,
        purpose: Purpose,
        prompt: Prompt,
        sampling: SamplingParams,
        *,
        documents: tuple[DocumentShare, ...] = (),
        deadline_s: float | None = None,
        constraint: Constraint | None = None,
        abstention: Abstention | None = None,
        priority: int = 0,
    ) -> Stream:
        """Hand a prompt to the engine: the stream of its call, which ends at once where the meter is closed already.

        Args:
            purpose: What the call is for.
            prompt: Its segments are the components on the ledger.
            sampling: How tokens are chosen, and how many at most.
            documents: The documents in the prompt, with their tokens.
            deadline_s: Seconds after which the engine stops it.
            constraint: What may be generated; None allows everything.
            abstention: When the engine refuses instead of the model; None leaves that to the model.
            priority: Higher goes first, of the calls that wait.

        Raises:
            GenerationError: The engine refused it; it is settled with no tokens.
            BudgetExceeded, StoreUnavailable, StorageFull: It was not reserved, and not handed to the engine.
        """
        question, model = self._question, self._engine.info.model
        reservation = self._reservation(
            purpose,
            model=model,
            revision=self._tokenizer_revision,
            input_tokens=prompt.components.total,
            max_output_tokens=sampling.max_tokens,
            components=prompt.components,
            documents=documents,
        )
        request = GenerationRequest(
            question.run_id if purpose is Purpose.ANSWER else reservation.event_id,
            prompt.ids,
            sampling,
            salt=question.principal.tenant_id,
            user=question.principal.user_id or question.principal.key_id,
            priority=priority,
            deadline_s=deadline_s,
            constraint=constraint,
            sources=prompt.sources,
            abstention=abstention,
        )
        self._ledger.reserve(reservation)
        settler = Settler(self._ledger, reservation.event_id, self._counted(purpose, model))
        try:
            stream = self._engine.submit(request, observer=settler)
        except GenerationError:
            self._ledger.settle(reservation.event_id, Settlement(status=UsageStatus.SERVER_ABORT, input_tokens=0))
            raise
        self._add(stream, settler)
        return stream

    def helping(
        self,
        purpose: Purpose,
        prompt: Prompt,
        *,
        max_tokens: int,
        time_share: int,
        documents: tuple[DocumentShare, ...] = (),
    ) -> Stream | None:
        """Begin a call of the language model that prepares the answer, which goes on without it.

        None where the engine refuses it, where it is late, or where the meter was closed. It may take 1 / `time_share`
        of the time that is left.

        Raises:
            BudgetExceeded, StoreUnavailable, StorageFull: It was not reserved, and not made.
        """
        left = self._question.seconds_left
        if self.closed or (left is not None and left <= 0):
            return None
        deadline_s = None if left is None else left / time_share
        try:
            return self.generating(
                purpose, prompt, SamplingParams(max_tokens=max_tokens), documents=documents, deadline_s=deadline_s
            )
        except GenerationError:
            return None

    def close(self) -> None:
        """Stop what is read or generated, and begin no other: the client has left, or the deadline has passed."""
        with self._lock:
            if not self.closed:
                self.ended.set_result(None)
            running = list(self._running)
        for stream, settler in running:
            self._end(stream, settler)

    def server_stops(self) -> None:
        """Settle every later cancellation as the server's abort."""
        with self._lock:
            self._server_stops = True
            for _, settler in self._running:
                settler.server_stops()

    def _reservation(
        self,
        purpose: Purpose,
        *,
        model: str,
        revision: str,
        input_tokens: int,
        max_output_tokens: int = 0,
        components: Components | None = None,
        documents: tuple[DocumentShare, ...] = (),
    ) -> Reservation:
        """The next call for a purpose, as the ledger writes it down."""
        question = self._question
        first, operation = KINDS[purpose]
        with self._lock:
            begun = self._begun[purpose]
            self._begun[purpose] += 1
        assert not begun or purpose in SEVERAL, "its number would be another call's"
        number = f"{first + begun}"
        if question.choice:
            number = f"{number}.{question.choice}"
        return Reservation(
            event_id=f"{question.request_id}:{number}",
            request_id=question.request_id,
            operation=operation,
            principal=question.principal,
            endpoint=question.endpoint,
            model=model,
            tokenizer_revision=revision,
            input_tokens=input_tokens,
            max_output_tokens=max_output_tokens,
            components=components or Components(),
            documents=documents if self._names_documents else (),
            collection_ids=question.scope.collection_ids or (),
        )

    def _counted(self, purpose: Purpose, model: str) -> CountedCall:
        """The count of a reserved call; it is among `calls` as soon as it has tokens."""
        counted = CountedCall(purpose, model=model)
        with self._lock:
            self._calls.append(counted)
        return counted

    def _add(self, stream: Stream, settler: Settler) -> None:
        with self._lock:
            self._running.append((stream, settler))
            if self._server_stops:
                settler.server_stops()
            closed = self.closed
        if closed:
            self._end(stream, settler)

    def _end(self, stream: Stream, settler: Settler) -> None:
        if not self._question.late:
            settler.client_left()
        stream.close()


class Meters:
    """Makes the meter of each answer. One instance serves every request.

    >>> meters = Meters(ledger=ledger, engine=engine, tokenizer_revision="1")
    >>> meter = meters.of(question)
    """

    def __init__(
        self, *, ledger: Ledger, engine: Engine, tokenizer_revision: str, names_documents: bool = True
    ) -> None:
        """`names_documents` is as `Meter` has it."""
        self._ledger = ledger
        self._engine = engine
        self._tokenizer_revision = tokenizer_revision
        self._names_documents = names_documents

    def unnamed(self) -> "Meters":
        """Those of questions whose documents are stored nowhere: the ledger is told of none."""
        return Meters(
            ledger=self._ledger,
            engine=self._engine,
            tokenizer_revision=self._tokenizer_revision,
            names_documents=False,
        )

    def of(self, question: Question) -> Meter:
        """The meter of the answer to a question, whose principal pays."""
        return Meter(
            question,
            ledger=self._ledger,
            engine=self._engine,
            tokenizer_revision=self._tokenizer_revision,
            names_documents=self._names_documents,
        )
