"""Several tenants in one application, who say the same things, and what tells each of them from the others.

Everything of a tenant's carries canaries: words of its own in texts, file names, metadata, titles and names. They are
stored in capitals and asked for in small letters, so that a canary in capitals in an answer came out of the store.
"""

import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from app.answering.conversations.conversations import Conversations
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.question_vectors import QuestionVectors
from app.api.application import create_app
from app.db.answer_citations import AnswerCitationRepository
from app.db.chunks import ChunkRepository
from app.documents.adapters.word_index import WordIndex
from app.server.bootstrap import build
from app.server.state import State
from app.settings import Settings
from app.types import Role
from retrieval.search import Search
from tests.app.answering.answerers import make_answerer
from tests.app.server.stations import ANY_EVIDENCE, state_with, stations
from tests.bench.service.stub_engine import StubEngine
from tests.generation.fakes import LetterTokenizer
from tests.retrieval.fakes import HashingEmbedder
from tests.server import ADMIN_KEY

TENANTS, PARTS = 5, ("left", "right")
ID = re.compile(r"\b[a-z]{2,8}_[0-9a-hjkmnp-tv-z]{26}\b")
CANARY = re.compile(r"Zq[0-9A-F]{12}Qz")
_KEYS = (
    (Role.MEMBER, None),
    (Role.READER, None),
    (Role.MEMBER, "left"),
    (Role.READER, "right"),
    (Role.ADMIN, "left"),
)
SHARED = (
    "The keeper of the light house counted forty ships in the month of March.",
    "Revenue of the harbour rose by twelve percent in the year 2024.",
    "Nine whales were seen from the pier in the spring of that year.",
)
"""What everybody's documents say."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a thing is: a tenant's, or one collection's of it."""

    tenant: str
    part: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """A key: of a tenant, with a role, limited to the tenant's `part` or not."""

    name: str
    tenant: str
    role: Role
    part: str | None
    headers: dict[str, str]

    def may_see(self, owner: Owner) -> bool:
        """Whether a thing is the caller's to see."""
        ours = owner.tenant == self.tenant
        return ours and (owner.part is None or self.part is None or owner.part == self.part)


class Owners(dict[str, Owner]):
    """Whose each id and canary is; those of a kind are drawn from without looking through all that were ever seen."""

    def __init__(self) -> None:
        super().__init__()
        self._by_kind: defaultdict[str, list[str]] = defaultdict(list)

    def __setitem__(self, mark: str, owner: Owner) -> None:
        if mark not in self:
            self._by_kind["Zq" if mark.startswith("Zq") else mark.partition("_")[0]].append(mark)
        super().__setitem__(mark, owner)

    def of_kind(self, kind: str) -> list[list[str]]:
        """Lists of all marks that begin with `kind`: two letters or more of an id's, or none."""
        exact = kind.removesuffix("_")
        return [
            marks
            for its, marks in self._by_kind.items()
            if its == exact or (exact == kind and its.startswith(kind)) or not kind
        ]

    def drawn(self, draw: random.Random, kind: str, fits: Callable[[str, Owner], bool]) -> str | None:
        """One of those that fit, each as likely as the others; None where there is none."""
        lists = self.of_kind(kind)
        sizes = [len(marks) for marks in lists]
        for _ in range(_DRAWS if sum(sizes) else 0):
            mark = draw.choice(draw.choices(lists, sizes)[0])
            if fits(mark, self[mark]):
                return mark
        fitting = [mark for marks in lists for mark in marks if fits(mark, self[mark])]
        return draw.choice(fitting) if fitting else None


_DRAWS = 40  # before all are looked through


@dataclass(slots=True, repr=False)  # hypothesis writes it out with each example that fails
class Tenancies:
    """The application, its callers, who owns which id and which canary, and which ids each tenant has `written` down.

    Those are in what changed something of its own, whose ever they are: they may be told to it again.
    """

    client: TestClient
    state: State
    callers: list[Caller] = field(default_factory=list)
    owners: Owners = field(default_factory=Owners)
    cursors: dict[str, list[str]] = field(default_factory=dict)
    written: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def canary(self, owner: Owner, *of: object) -> str:
        """A word of an owner's own, the same for the same `of`."""
        digest = hashlib.sha256(repr((owner, of)).encode()).hexdigest()[:12].upper()
        word = f"Zq{digest}Qz"
        self.owners[word] = owner
        return word

    def claim(self, text: str, owner: Owner) -> None:
        """The ids in what an owner was told are its own, unless somebody's already."""
        for found in ID.findall(text):
            if found not in self.owners:
                self.owners[found] = owner

    def marks(self, *, kind: str, tenant: str) -> list[str]:
        """A tenant's ids and canaries that begin with `kind`, the oldest first."""
        return [mark for marks in self.owners.of_kind(kind) for mark in marks if self.owners[mark].tenant == tenant]

    def admin(self, tenant: str) -> Caller:
        """The tenant's administrator."""
        return next(caller for caller in self.callers if caller.tenant == tenant and caller.role is Role.ADMIN)

    @property
    def tenants(self) -> list[str]:
        """Their ids, the vandal's last."""
        return list(dict.fromkeys(caller.tenant for caller in self.callers))


@contextmanager
def tenancies(
    data_dir: Path, *, database_url: str = "", tenants: int = TENANTS, documents: int = 4
) -> Iterator[Tenancies]:
    """The real application with `tenants` tenants of two collections of `documents` documents each.

    Only the models are stand-ins. `database_url` is a migrated or empty database; SQLite in `data_dir` by default.
    """
    settings = Settings(data_dir=data_dir, admin_key=ADMIN_KEY, database_url=database_url, _env_file=None)
    tokenizer, embedder = LetterTokenizer(), HashingEmbedder(max_tokens=64)
    engine = StubEngine(tokenizer, context_window=32_768)
    with build(settings, with_models=False) as bare:
        models = stations(bare, engine, tokenizer=tokenizer, embedder=embedder, limits=ANY_EVIDENCE)
        search = Search(models.index, models.lexical, ChunkRepository(bare.database))
        answerer = make_answerer(
            finder=Finder(search=search, vectors=QuestionVectors(embedder)),
            engine=engine,
            tokenizer=tokenizer,
            contents=bare.corpus.contents,
            ledger=bare.usage.ledger,
            limits=ANY_EVIDENCE,
            conversations=Conversations(bare.history.conversations, count_tokens=tokenizer.count, history_tokens=500),
            citations=AnswerCitationRepository(bare.database, clock=bare.usage.ledger.seconds),
        )
        state = state_with(bare, models=replace(models, answerer=answerer))
        models.worker.start()
        try:
            app = create_app(lambda: nullcontext(state), version="0")
            with TestClient(app, raise_server_exceptions=False) as client:
                made = Tenancies(client, state)
                for number in range(tenants):
                    _settle_in(made, number, documents)
                assert isinstance(models.lexical, WordIndex)
                models.lexical.start()
                models.lexical.wait()
                yield made
        finally:
            models.worker.stop()
            models.lexical.close()
            engine.close()


def _settle_in(made: Tenancies, number: int, documents: int) -> None:
    tenant = made.canary(Owner(f"{number}"), "tenant")
    owner = made.owners[tenant] = Owner(tenant)
    admin = _key(made, owner, Role.ADMIN, None, {})
    collections: dict[str, str] = {}
    for part in PARTS:
        its = Owner(tenant, part)
        name, metadata = made.canary(its, "collection"), {"about": made.canary(its, "collection metadata")}
        answer = _said(made, admin, its, "POST", "/v1/collections", {"name": name, "metadata": metadata})
        collections[part] = answer["id"]
        for document in range(documents):
            _upload(made, admin, its, answer["id"], document)
    for role, limit_to in _KEYS:
        _key(made, owner, role, limit_to, collections)
    for caller in [caller for caller in made.callers if caller.tenant == tenant]:
        _use(made, caller)
    limit = {"limit": 10**12, "period": "month"}
    _said(made, admin, owner, "POST", "/v1/admin/budgets", limit)
    page = _said(made, admin, owner, "GET", "/v1/documents?limit=1", None)
    made.cursors[tenant] = [page["next_cursor"]]


def _key(made: Tenancies, owner: Owner, role: Role, part: str | None, collections: dict[str, str]) -> Caller:
    key, secret = made.state.access.keys.create(
        tenant_id=owner.tenant,
        user_id=made.canary(owner, "user", role, part),
        name=made.canary(owner, "key", role, part),
        role=role,
        collections=None if part is None else (collections[part],),
    )
    made.claim(key.id, owner)
    for secretive in (secret, key.prefix):
        made.owners[secretive] = owner
    caller = Caller(
        f"{role}{f' of {part}' if part else ''}", owner.tenant, role, part, {"Authorization": f"Bearer {secret}"}
    )
    made.callers.append(caller)
    return caller


def _upload(made: Tenancies, admin: Caller, its: Owner, collection_id: str, number: int) -> None:
    """The first document has the same bytes everywhere; the others share sentences and have a canary each."""
    own = f" It is called {made.canary(its, 'text', number)} there." if number else ""
    body = {
        "text": "\n\n".join(f"{sentence}{own}" for sentence in SHARED),
        "filename": f"{made.canary(its, 'name', number)}.txt",
        "collection_id": collection_id,
        "external_id": made.canary(its, "external", number),
        "metadata": {"year": 2020 + number, "by": made.canary(its, "by", number), made.canary(its, "field"): True},
        "wait": 30,
    }
    answer = _said(made, admin, its, "POST", "/v1/documents", body)
    assert answer["status"] == "indexed", answer
    assert answer["duplicate_of"] is None, "no copy of somebody else's is a duplicate"
    chunks = _said(made, admin, its, "GET", f"/v1/documents/{answer['id']}/chunks", None)
    assert chunks["data"], answer


def _use(made: Tenancies, caller: Caller) -> None:
    """A conversation, an answer in it, and lines in the ledger."""
    mine = Owner(caller.tenant, caller.part)
    title = made.canary(mine, "title", caller.name)
    conversation = _said(made, caller, mine, "POST", "/v1/conversations", {"title": title})
    ask = {"question": f"How many ships were counted? {made.canary(mine, 'asked', caller.name)}"}
    answer = _said(made, caller, mine, "POST", "/v1/ask", {**ask, "conversation_id": conversation["id"]})
    assert answer["citations"], answer


def _said(made: Tenancies, caller: Caller, owner: Owner, method: str, path: str, body: object) -> Any:
    content = None if body is None else json.dumps(body)
    headers = {**caller.headers, "Content-Type": "application/json"}
    response = made.client.request(method, path, content=content, headers=headers)
    assert response.is_success, (method, path, response.text)
    made.claim(f"{response.text} {response.headers['x-request-id']}", owner)
    return response.json()
