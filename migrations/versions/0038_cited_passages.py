"""Passages that kept answers cite, and what became of each in the live version of its document."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

_BLOCK = 500
_TURNS = sa.table(
    "conversation_turn",
    sa.column("request_id", sa.Text()),
    sa.column("citations", sa.JSON(none_as_null=True)),
)
_PLACE = ("document_id", "version", "start_char", "end_char")


def upgrade() -> None:
    passages = op.create_table(
        "cited_passage",
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start_char", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("end_char", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("place_version", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("place_start", sa.Integer(), nullable=True),
        sa.Column("place_end", sa.Integer(), nullable=True),
        sa.Column("page_start", sa.Integer(), nullable=True),
        sa.Column("page_end", sa.Integer(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('current', 'moved', 'altered', 'gone')", name="ck_cited_passage_state"),
        sa.PrimaryKeyConstraint(*_PLACE, name="pk_cited_passage"),
    )
    superseded = op.create_table(
        "superseded_version",
        sa.Column("document_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("document_id", "version", name="pk_superseded_version"),
    )
    connection = op.get_bind()
    live = {
        row.id: row.live_version
        for row in connection.execute(sa.text("SELECT id, live_version FROM document WHERE live_version IS NOT NULL"))
    }
    found = {place for citations in _citations(connection) for place in _places(citations) if place[0] in live}
    for block in _blocks(sorted(found)):
        rows = [dict(zip(_PLACE, place, strict=True)) for place in block]
        op.bulk_insert(passages, [{**row, "place_version": row["version"]} for row in rows])
    earlier = {(document_id, version) for document_id, version, _, _ in found if version != live[document_id]}
    for versions in _blocks(sorted(earlier)):
        op.bulk_insert(superseded, [{"document_id": one[0], "version": one[1]} for one in versions])


def downgrade() -> None:
    op.drop_table("superseded_version")
    op.drop_table("cited_passage")


def _citations(connection: sa.Connection) -> Iterator[list[dict[str, Any]]]:
    """The citations of all turns, a block of turns at a time."""
    after = ""
    while True:
        query = sa.select(_TURNS).where(_TURNS.c.request_id > after).order_by(_TURNS.c.request_id).limit(_BLOCK)
        rows = connection.execute(query).all()
        for row in rows:
            yield row.citations
        if len(rows) < _BLOCK:
            return
        after = rows[-1].request_id


def _places(citations: list[dict[str, Any]]) -> Iterator[tuple[str, int, int, int]]:
    """The passages of citations; those of early answers may lack a field."""
    for citation in citations:
        place = tuple(citation.get(name) for name in _PLACE)
        if isinstance(place[0], str) and all(isinstance(one, int) for one in place[1:]):
            yield place  # type: ignore[misc]


def _blocks(items: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), _BLOCK):
        yield items[start : start + _BLOCK]
