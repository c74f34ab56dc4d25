"""Routes of watched questions: asked again when their passages differ, with an event where the evidence does."""

from fastapi import APIRouter

from app.api.dependencies import CorpusDep, Cursor, HistoryDep, Limit, PrincipalDep, scope_for
from app.api.schemas.bounds import Id
from app.api.schemas.shape import Page, problems
from app.api.schemas.watches import NewWatch, WatchBody, WatchDeletedBody, WatchEventBody, WatchPatch
from app.db.values import Keep
from app.db.watches import WatchTerms
from app.server.state import DocumentsState
from app.types import Principal

router = APIRouter(tags=["watches"])


@router.post("/v1/watches", status_code=201, summary="Watch a question", responses=problems(404, 409, 422, 503))
def create_watch(body: NewWatch, corpus: CorpusDep, history: HistoryDep, principal: PrincipalDep) -> WatchBody:
    """Ask it again by a schedule, or when a document of its scope changes; the key that makes it pays.

    Each time its passages are looked for. Only where others would be presented, or other versions of them, is it asked.
    """
    terms = body.terms
    _require_scope(corpus, principal, terms)
    return WatchBody.of(history.watches.create(principal, terms))


@router.get("/v1/watches", summary="List watched questions", responses=problems(422, 503))
def list_watches(
    history: HistoryDep, principal: PrincipalDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[WatchBody]:
    """The caller's watches, newest first; for administrators those of all users."""
    found, next_cursor = history.watches.list(principal, limit=limit, cursor=cursor)
    return Page(data=list(map(WatchBody.of, found)), has_more=next_cursor is not None, next_cursor=next_cursor)


@router.get("/v1/watches/{watch_id}", summary="Read a watched question", responses=problems(404, 503))
def read_watch(watch_id: Id, history: HistoryDep, principal: PrincipalDep) -> WatchBody:
    """A watch with its last answer, and why it is not looked at, if so."""
    return WatchBody.of(history.watches.get(watch_id, principal=principal))


@router.patch("/v1/watches/{watch_id}", summary="Change a watched question", responses=problems(404, 422, 503))
def patch_watch(
    watch_id: Id, body: WatchPatch, corpus: CorpusDep, history: HistoryDep, principal: PrincipalDep
) -> WatchBody:
    """Change its question, scope, schedule or budget, or pause it. A run under way is thrown away.

    With another question or scope the next answer is the first, and makes no event. Of another user's watch an
    administrator changes `paused` alone.
    """
    terms = body.terms
    _require_scope(corpus, principal, terms)
    return WatchBody.of(history.watches.update(watch_id, terms, principal=principal))


@router.delete("/v1/watches/{watch_id}", summary="Delete a watched question", responses=problems(404, 503))
def delete_watch(watch_id: Id, history: HistoryDep, principal: PrincipalDep) -> WatchDeletedBody:
    """Delete it for good with its events."""
    history.watches.delete(watch_id, principal=principal)
    return WatchDeletedBody(id=watch_id)


@router.get("/v1/watches/{watch_id}/events", summary="List what changed", responses=problems(404, 422, 503))
def list_watch_events(
    watch_id: Id, history: HistoryDep, principal: PrincipalDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[WatchEventBody]:
    """The changes of its evidence, newest first: both answers, and the passages that made the difference.

    Numbers, dates, names, negations and passages count, the wording of a passage or an answer does not.
    """
    found, next_cursor = history.watches.events(watch_id, principal=principal, limit=limit, cursor=cursor)
    return Page(data=list(map(WatchEventBody.of, found)), has_more=next_cursor is not None, next_cursor=next_cursor)


def _require_scope(corpus: DocumentsState, principal: Principal, terms: WatchTerms) -> None:
    """Check a scope that is set, as a search does."""
    if not isinstance(terms.scope, Keep):
        scope = terms.scope
        scope_for(
            corpus,
            principal,
            collection_ids=scope.collection_ids,
            document_ids=scope.document_ids,
            raw_filter=scope.filter,
        )
