"""Questions drawn at random and written with their calls, outcomes and feedback, and counted again the slow way."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import sqlalchemy as sa

from app.db.answer_citations import AnswerCitationRepository, AnswerOutcome, AnswerResult
from app.db.session import Database
from app.db.tables.answers import feedback
from app.db.tables.documents import app_user, tenant
from app.db.tables.ledger import answer_outcome, api_request, usage_event
from app.types import Components, Operation, Principal, Reservation, Role, Settlement, UsageStatus
from app.usage.ledger.ledger import Ledger
from app.usage.rollups.rollups import Rollups
from tests.app.usage.samples import Clock

MICRO = 1_000_000


@dataclass(frozen=True)
class Asked:
    """A question that ended at `at`, Unix seconds; `result` None: no outcome is recorded, `score` None: no feedback."""

    at: float
    result: str | None = "answered"
    confirmed: bool | None = True
    total_us: int | None = 1_000_000
    user_id: str = "u1"
    ours: bool = True
    score: float | None = None
    tokens: tuple[int, int] = (10, 5)


class Installation:
    """A database with what was asked; each has tenants of its own."""

    def __init__(self, database: Database, clock: Clock, asked: Sequence[Asked], *, zone: Any) -> None:
        self.database = database
        with database.write() as connection:
            number = connection.execute(sa.select(sa.func.count()).select_from(tenant)).scalar()
            self.tenant, self.rival = f"run{number}-ours", f"run{number}-theirs"
            for name in (self.tenant, self.rival):
                connection.execute(sa.insert(tenant).values(id=name, created_at=0))
                for user_id in {one.user_id for one in asked}:
                    connection.execute(sa.insert(app_user).values(tenant_id=name, id=user_id, created_at=0))
        for place, one in enumerate(asked):
            clock.now = one.at
            ledger = Ledger(database, "boot", clock, observers=(Rollups(zone),))  # its clock never goes back
            self.write(ledger, clock, f"{self.tenant}-{place}", one)

    def write(self, ledger: Ledger, clock: Clock, request_id: str, one: Asked) -> None:
        """Write down one question."""
        tenant_id = self.tenant if one.ours else self.rival
        read, written = one.tokens
        ledger.reserve(
            Reservation(
                event_id=f"{request_id}:1",
                request_id=request_id,
                operation=Operation.CHAT,
                principal=Principal(tenant_id, one.user_id, "k1", Role.MEMBER),
                endpoint="ask",
                model="m1",
                tokenizer_revision="r1",
                input_tokens=read,
                max_output_tokens=100,
                components=Components(question=read),
            )
        )
        ledger.settle(f"{request_id}:1", Settlement(status=UsageStatus.COMPLETED, output_tokens=written))
        if one.result is not None:
            AnswerCitationRepository(self.database, clock=clock).record(
                request_id,
                tenant_id=tenant_id,
                citations={},
                outcome=AnswerOutcome(
                    request_id=request_id,
                    tenant_id=tenant_id,
                    user_id=one.user_id,
                    endpoint="ask",
                    result=AnswerResult(one.result),
                    confirmed=one.confirmed if one.result == "answered" else None,
                    total_us=one.total_us,
                ),
            )
        if one.score is not None:
            with self.database.write() as connection:
                connection.execute(
                    sa.insert(feedback).values(
                        request_id=request_id,
                        user_id=one.user_id,
                        tenant_id=tenant_id,
                        score=one.score,
                        created_at=one.at,
                        updated_at=one.at,
                    )
                )

    def recount(self, start: int, end: int) -> dict[str, Any]:
        """The figures of `[start, end)`, Unix seconds, from single rows."""
        with self.database.read() as connection:
            ended = connection.execute(sa.select(answer_outcome)).all()
            requests = connection.execute(sa.select(api_request)).all()
            calls = connection.execute(sa.select(usage_event)).all()
            said = connection.execute(sa.select(feedback)).all()
        known = {row.request_id for row in ended}

        def inside(at: int) -> bool:
            return start * MICRO <= at < end * MICRO

        mine = [row for row in ended if row.tenant_id == self.tenant and inside(row.ended_at)]
        lost = [
            row
            for row in requests
            if row.tenant_id == self.tenant and row.request_id not in known and inside(row.accepted_at)
        ]
        took = sorted(
            row.total_us for row in mine if row.total_us is not None and row.result in {"answered", "unsure", "refused"}
        )
        settled = [row for row in calls if row.tenant_id == self.tenant and inside(row.settled_at)]
        scores = [row.score for row in said if row.tenant_id == self.tenant and inside(round(row.created_at * MICRO))]
        confirmable = [row for row in mine if row.confirmed is not None]
        confirmed = sum(1 for row in confirmable if row.confirmed)
        return {
            "num_questions": len(mine) + len(lost),
            **{f"num_{kind.value}": sum(1 for row in mine if row.result == kind) for kind in AnswerResult},
            "num_unknown": len(lost),
            "num_confirmable": len(confirmable),
            "num_confirmed": confirmed,
            "confirmed_share": round(confirmed / len(confirmable), 4) if confirmable else None,
            "num_thumbs_up": sum(1 for score in scores if score > 0),
            "num_thumbs_down": sum(1 for score in scores if score < 0),
            "median_seconds": percentile(took, 0.5),
            "p95_seconds": percentile(took, 0.95),
            "num_active_users": len({row.user_id for row in (*mine, *lost)}),
            "num_model_requests": len(settled),
            "input_tokens": sum(row.input_tokens for row in settled),
            "output_tokens": sum(row.output_tokens for row in settled),
        }


def percentile(sorted_us: list[int], share: float) -> float | None:
    """By nearest rank, in seconds."""
    if not sorted_us:
        return None
    return round(sorted_us[ceil(round(share * len(sorted_us), 6)) - 1] / MICRO, 3)
