"""The scripted models of golden answers: an engine, an embedder and a span reader that depend on their input alone."""

import asyncio
import json
import re
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tokenizers import Tokenizer, models, pre_tokenizers, processors

from generation.errors import EngineFull
from generation.ports import Observer
from generation.types import Completion, Delta, EngineStats, FinishReason, GenerationRequest, ModelInfo, Timings
from retrieval.errors import RetrievalError
from retrieval.ports import Vectors
from retrieval.types import Pointer, Span
from tests.app.answering.idle_engine import IdleEngine
from tests.app.answering.pointing_reader import PointingReader
from tests.app.answering.test_prompt import CharacterTokenizer
from tests.golden.library import DOCUMENTS
from tests.golden.questions import QUESTIONS
from tests.retrieval.fakes import HashingEmbedder

LAST = -1
_DELTA = 24  # characters of one delta
_SOURCE = re.compile(r'"""\n(?P<header>\[(?P<number>\d+)\][^\n]*)\n?(?P<body>.*?)"""\n', re.DOTALL)
_SENTENCE = re.compile(r"[^.!?\n|#]{12,}[.!?]?")
_WORD = re.compile(r"\w+")
_REWRITING = "Rewrite the last question"
_SHORTENING = "Shorten the passage"
_UNSUPPORTED = "Ninety zeppelins were sold at auction in Rome"


class Gate:
    """A place where a scripted model waits until a test lets it on; open unless it is shut."""

    def __init__(self) -> None:
        self.reached, self._open = threading.Event(), threading.Event()
        self.free()

    def shut(self) -> None:
        """Hold the next one that comes."""
        self.reached.clear()
        self._open.clear()

    def free(self) -> None:
        """Let through the one that waits, and all that come."""
        self._open.set()

    def wait(self) -> None:
        """Pass the gate; blocks while it is shut."""
        if not self._open.is_set():
            self.reached.set()
            assert self._open.wait(30), "nobody opened the gate"


@dataclass(slots=True)
class Script:
    """What the scripted models do besides answering; each case begins with a new one.

    Attributes:
        holds_at: The delta before which the engine holds until its stream is closed; `LAST` is behind all deltas.
        ends: How the engine ends.
        late_at: The delta before which the deadline ends the generation.
        full: Whether the engine's queue is full, as it says beforehand.
        refuses_after: The number of requests after which the engine refuses each one.
    """

    holds_at: int | None = None
    ends: FinishReason | None = None
    late_at: int | None = None
    full: bool = False
    refuses_after: int = 1000


class ScriptedEngine(IdleEngine):
    """Implements `Engine`: writes an answer that depends on the prompt alone, in deltas of a fixed size."""

    def __init__(self) -> None:
        self.info = ModelInfo(model="scripted", revision="0", context_window=12_000, device="cpu", dtype="float32")
        self.script, self.held, self.submitted = Script(), threading.Event(), 0
        self._tokenizer = CharacterTokenizer()
        self._observers = ThreadPoolExecutor(1, thread_name_prefix="golden-observer")

    def start(self, script: Script) -> None:
        """Begin a case."""
        self.script, self.submitted = script, 0
        self.held.clear()

    def stats(self) -> EngineStats:
        waiting = 1000 if self.script.full else 0
        return EngineStats(
            waiting=waiting, running=0, capacity=1, prefill_tokens=0, decode_tokens=0, requests=0, cancelled=0
        )

    def submit(self, request: GenerationRequest, *, observer: Observer) -> "ScriptedStream":
        self.submitted += 1
        if self.submitted > self.script.refuses_after:
            raise EngineFull(retry_after_s=1)
        text = says(self._tokenizer.decode(request.prompt))
        return ScriptedStream(self, request, text, observer, self._observers)

    def close(self) -> None:
        self._observers.shutdown()


class ScriptedStream:
    """Implements `Stream`: a fixed text in deltas; closing it ends it as cancelled."""

    def __init__(
        self, engine: ScriptedEngine, request: GenerationRequest, text: str, observer: Observer, on: ThreadPoolExecutor
    ) -> None:
        self._engine, self._request, self._observer, self._on = engine, request, observer, on
        self._text = text[: request.sampling.max_tokens]
        self._reason = FinishReason.STOP if self._text == text else FinishReason.LENGTH
        self._closed, self._lock = threading.Event(), threading.Lock()
        self._shown, self._ended = 0, False
        self._told: list[Completion] = []

    async def __aiter__(self) -> AsyncIterator[Delta | Completion]:
        script = self._engine.script
        pieces = [self._text[at : at + _DELTA] for at in range(0, len(self._text), _DELTA)]
        reason = script.ends or self._reason
        for place, piece in enumerate([*pieces, ""]):
            if script.holds_at == (place if piece else LAST):
                self._engine.held.set()
                await asyncio.to_thread(self._closed.wait, 30)
            if self._closed.is_set():
                break
            if script.late_at == place:
                reason = FinishReason.DEADLINE
                break
            if piece:
                self._shown += len(piece)
                yield Delta(piece, len(piece))
        await asyncio.wrap_future(
            self._on.submit(self._end, FinishReason.CANCELLED if self._closed.is_set() else reason)
        )
        yield self._told[0]

    def close(self) -> None:
        self._closed.set()
        self._on.submit(self._end, FinishReason.CANCELLED)

    def _end(self, reason: FinishReason) -> None:
        """Tell the observer how it ended, once."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
        text = self._text[: self._shown]
        completion = Completion(
            id=self._request.id,
            text=text,
            token_ids=tuple(map(ord, text)),
            finish_reason=reason,
            error="The device broke." if reason is FinishReason.ERROR else None,
            prompt_tokens=len(self._request.prompt),
            cached_tokens=0,
            delivered_tokens=len(text),
            timings=Timings(queue_ms=0.0, first_token_ms=1.0, total_ms=2.0),
        )
        self._told.append(completion)
        self._observer.finish(completion)


class ScriptedEmbedder(HashingEmbedder):
    """Implements `ChunkingEmbedder`: hashes words, and may be held before it embeds a question or passages."""

    def __init__(self) -> None:
        super().__init__(max_tokens=64)
        self.before_query, self.before_documents = Gate(), Gate()
        self.tokenizer = _tokenizer()
        self._vectors: dict[str, Vectors] = {}

    def embed_query(self, text: str) -> Vectors:
        self.before_query.wait()
        return super().embed_query(text)

    def embed_documents(self, texts: Sequence[str], *, on_batch: Callable[[int], None] | None = None) -> Vectors:
        self.before_documents.wait()
        return super().embed_documents(texts, on_batch=on_batch)

    def _vector(self, text: str) -> Vectors:
        """The vector of a text, computed once: drawing a direction for each word takes most of a case's time."""
        if text not in self._vectors:
            self._vectors[text] = super()._vector(text)
        return self._vectors[text]


class ScriptedReader:
    """Implements `SpanReader`: points at the words that `QUESTIONS` names, and may be held before it reads."""

    model, revision, threshold = "pointing", "r1", 0.4

    def __init__(self) -> None:
        self.gate, self.breaks = Gate(), False

    def count_tokens(self, question: str, passages: Sequence[str]) -> int:
        return PointingReader("").count_tokens(question, passages)

    def read(self, question: str, passages: Sequence[str]) -> list[Pointer | None]:
        return [found[0] for found in self.mark(question, passages, [[Span(0, len(one))] for one in passages])]

    def mark(
        self,
        question: str,
        passages: Sequence[str],
        pieces: Sequence[Sequence[Span]],
        *,
        on_batch: Callable[[int], None] | None = None,
    ) -> list[list[Pointer | None]]:
        self.gate.wait()
        if self.breaks:
            raise RetrievalError("The reader broke.")
        folded = question.casefold()
        asked = max(
            (one for one in QUESTIONS if one.key and one.key in folded), key=lambda one: len(one.key), default=None
        )
        if asked is None:
            reader = PointingReader("", asked="\0")
        else:
            reader = PointingReader(asked.points_at, margins=(asked.margin,))
        return reader.mark(question, passages, pieces, on_batch=on_batch)


def _tokenizer() -> Tokenizer:
    """One token a word or mark, with the words of the library for its vocabulary: a trained one differs each time."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    found = sorted({word for text in DOCUMENTS.values() for word in re.findall(r"\w+|[^\w\s]", text)})
    vocabulary = {word: number for number, word in enumerate([*special, *found])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def says(prompt: str) -> str:
    """The answer to a prompt: it copies the sentence nearest to the question, and by the question's hash errs."""
    if _REWRITING in prompt:
        return "How long is the ferry Aldey Star?"
    if _SHORTENING in prompt:
        return prompt.partition('"""\n')[2][:60]
    question = prompt.rpartition("Question: ")[2].partition("\n")[0]
    sentences = _nearest(question, prompt)
    in_json = "JSON Schema: " in prompt
    if not sentences:
        return json.dumps({"answer": "Perhaps.", "sources": []}) if in_json else "Perhaps it was so."
    (first, number), (second, other) = sentences[0], sentences[min(1, len(sentences) - 1)]
    if in_json:
        return json.dumps({"answer": first, "sources": [number]}, ensure_ascii=False)
    variants = (
        f"{first} [{number}].",
        f"{first} [{number}]. {_UNSUPPORTED}.",
        f"{_UNSUPPORTED} [{number}].",
        "I don't know.",
        f"**{first}** [{other}] [97].\n\n- {second} [{other}]\n- `{_UNSUPPORTED}`",
        f"## Answer\n\n{second} [{other}]. {first}.",
        f"{first} [{number}][{other}], and {second} [{number}, {other}].",
    )
    return variants[zlib.crc32(question.encode()) % len(variants)]


def _nearest(question: str, prompt: str) -> list[tuple[str, int]]:
    """Sentences of the sources with their numbers, those with most words of the question first."""
    wanted = set(_WORD.findall(question.casefold()))
    found = [
        (" ".join(sentence.group().split()).rstrip(".!?"), int(source["number"]))
        for source in _SOURCE.finditer(prompt)
        for sentence in _SENTENCE.finditer(source["body"])
    ]
    return sorted(found, key=lambda one: -len(wanted & set(_WORD.findall(one[0].casefold()))))
