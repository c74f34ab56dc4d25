"""Measures the swap of a document that kept answers cite, beside many other kept citations.

Usage: `python -m tests.bench.ingest.swap_cited [--citations 100000] [--postgres]`. There are two cases: a hundred
documents share the citations, and all are of the one document that is swapped. Each prints the seconds of indexing the
new version with its swap, those of following in the background, and the milliseconds (median, longest) of reading a
conversation with a hundred citations before and meanwhile.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import sqlalchemy as sa

from app.db.cited_passages import CitedPassageRepository
from app.db.conversations import ConversationRepository
from app.db.dialect import insert_or_ignore
from app.db.migration import upgrade
from app.db.session import Database
from app.db.tables.answers import cited_passage
from app.db.tables.documents import conversation, conversation_turn
from app.db.tables.ledger import answer_citation
from app.documents.passage_follower import PassageFollower
from app.types import Document, Principal, Role
from tests.app.db.samples import Library
from tests.postgres import migrated_postgres

_PERSON = Principal("t1", "ann", "key_a", Role.MEMBER)
_SENTENCES = 1_000
_A_TURN = 5
_TURNS_A_CONVERSATION = 20
_NOUNS = ("rent", "deposit", "cellar", "garden", "window", "tenant", "owner", "street", "winter", "repair")


def sentences(draw: random.Random) -> list[str]:
    """The sentences of one document."""
    return [
        f"Clause {at} says that the {draw.choice(_NOUNS)} of house {draw.randint(1, 999)} has {draw.randint(2, 99)} "
        f"{draw.choice(_NOUNS)}s behind the {draw.choice(_NOUNS)} until {1900 + at}."
        for at in range(_SENTENCES)
    ]


def edited(draw: random.Random, texts: Sequence[str]) -> list[str]:
    """The next version: one sentence in ten is left out, one reworded, and one new."""
    found = []
    for text in texts:
        match draw.randrange(10):
            case 0:
                continue
            case 1:
                found.append(text.replace(" has ", " keeps no fewer than "))
            case 2:
                found += [f"A new clause of {draw.random()}.", text]
            case _:
                found.append(text)
    return found


def cite(database: Database, documents: Sequence[tuple[Document, Sequence[str]]], count: int) -> str:
    """Keep turns with so many citations of the documents' sentences; returns a conversation's id."""
    draw, conversations = random.Random(5), ConversationRepository(database)
    made = ""
    number = 0
    while number < count:
        made = conversations.create(_PERSON).id
        turns, passages, cited = [], [], []
        for ordinal in range(1, _TURNS_A_CONVERSATION + 1):
            document, texts = draw.choice(documents)
            citations = []
            for _ in range(_A_TURN):
                at = draw.randrange(len(texts))
                start = sum(len(text) + 2 for text in texts[:at])
                end = start + len(texts[at])
                place = {"document_id": document.id, "version": 1, "start_char": start, "end_char": end}
                citations.append({**place, "cited_text": texts[at], "verified": True, "page_start": 1, "page_end": 1})
                passages.append({**place, "place_version": 1})
                number += 1
            request_id = f"req_{number}"
            turn = {"conversation_id": made, "ordinal": ordinal, "request_id": request_id, "answered": True}
            turns.append({**turn, "created_at": 1.0, "question": "?", "answer": "Yes.", "citations": citations})
            row = {"request_id": request_id, "document_id": document.id, "tenant_id": "t1"}
            cited.append({**row, "num_citations": _A_TURN, "cited_at": 1})
        with database.write() as connection:
            connection.execute(sa.insert(conversation_turn), turns)
            connection.execute(sa.insert(answer_citation), cited)
            connection.execute(insert_or_ignore(cited_passage).on(connection), passages)
    return made


def measure(database: Database, *, citations: int, others: int) -> dict[str, object]:
    """The figures of a swap of one document among `others` that share the citations."""
    draw, library = random.Random(3), Library(database)
    texts = [sentences(draw) for _ in range(1 + others)]
    documents = [(library.index(*one), one) for one in texts]
    asked = cite(database, documents, citations)
    swapped, old = documents[0]
    follower, passages = PassageFollower(CitedPassageRepository(database)), CitedPassageRepository(database)
    follower.work()

    def again(texts: Sequence[str]) -> float:
        started = time.perf_counter()
        library.index_again(swapped, *texts, replace=True)
        return time.perf_counter() - started

    def followed() -> float:
        started = time.perf_counter()
        follower.work()
        return time.perf_counter() - started

    first = edited(draw, old)
    swap, background = again(first), followed()
    conversations = ConversationRepository(database)

    def read() -> float:
        begun = time.perf_counter()
        turns = conversations.turns(asked, principal=_PERSON)
        passages.of_citations([one for turn in turns for one in turn.citations], tenant_id="t1")
        return 1000 * (time.perf_counter() - begun)

    idle = [read() for _ in range(40)]
    busy: list[float] = []
    done = threading.Event()

    def reading() -> None:
        while not done.is_set():
            busy.append(read())

    again(edited(draw, first))
    reader = threading.Thread(target=reading)
    reader.start()
    followed()
    done.set()
    reader.join()
    with database.read() as connection:
        distinct = connection.execute(sa.select(sa.func.count()).select_from(cited_passage)).scalar_one()
        counts = sa.select(cited_passage.c.state, sa.func.count()).where(cited_passage.c.document_id == swapped.id)
        states = dict(map(tuple, connection.execute(counts.group_by(cited_passage.c.state))))
        kept = connection.execute(sa.select(sa.func.count()).select_from(conversation)).scalar_one()
    return {
        "citations": citations,
        "documents": 1 + others,
        "conversations": kept,
        "passages": distinct,
        "states": states,
        "swap_s": round(swap, 3),
        "background_s": round(background, 3),
        "read_ms": [round(statistics.median(idle), 2), round(max(idle), 2)],
        "read_meanwhile_ms": [round(statistics.median(busy), 2), round(max(busy), 2)],
    }


def main() -> None:
    """Measure both cases and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--citations", type=int, default=100_000)
    parser.add_argument("--postgres", action="store_true", help="instead of SQLite")
    arguments = parser.parse_args()
    for others in (99, 0):
        with ExitStack() as stack:
            if arguments.postgres:
                database = stack.enter_context(migrated_postgres())
            else:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                database = Database.open(f"sqlite:///{Path(folder) / 'footnote.db'}")
                stack.callback(database.close)
                upgrade(database)
            figures = measure(database, citations=arguments.citations, others=others)
        sys.stdout.write(json.dumps(figures) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
