"""`python -m tests.mutations.stores`: bugs of indexes and chunk keys, planted; each must fail a test."""

from tests.mutations.planting import Bug, main

_REMOVAL = "app/db/removal.py"
_SCOPES = "app/db/scopes.py"
_STORE = "app/documents/adapters/pgvector_store.py"
_DELETED = ("tests/app/jobs/test_index_moments.py",)
_KEYS = ("tests/app/db/test_chunk_keys.py",)
_PGVECTOR = ("tests/app/documents/test_pgvector_store.py",)

BUGS = (
    Bug(
        "a deletion is not told inside its transaction",
        _REMOVAL,
        "    if follow is not None and len(removed):\n",
        "    if follow is not None and not len(removed):\n",
        _DELETED,
    ),
    Bug(
        "keys below the counter are taken for shown",
        _SCOPES,
        "first=known.marks.settled",
        "first=known.marks.given",
        _KEYS,
    ),
    Bug(
        "a commit that changes no counter is not seen",
        _SCOPES,
        "known.marks == marks",
        "known.marks.given == marks.given",
        _KEYS,
    ),
    Bug(
        "a claim goes on with the keys of the one before",
        "app/db/jobs.py",
        "        first_key=None,\n",
        "",
        _KEYS,
    ),
    Bug(
        "keys are taken inside of the commit's transaction",
        "app/db/published_rows.py",
        "    query = sa.select(job.c.id, job.c.first_key).where(job.c.id.in_([each.id for each in counts]))\n",
        "    take_keys(connection, counts)\n"
        "    query = sa.select(job.c.id, job.c.first_key).where(job.c.id.in_([each.id for each in counts]))\n",
        _KEYS,
    ),
    Bug(
        "the index is asked once, whatever it leaves out",
        _STORE,
        "set_config('hnsw.iterative_scan', 'strict_order', true)",
        "set_config('hnsw.iterative_scan', 'off', true)",
        _PGVECTOR,
    ),
    Bug(
        "fewer hits than asked for are taken for all",
        _STORE,
        "                if len(found) == k:\n",
        "                if found:\n",
        _PGVECTOR,
    ),
    Bug(
        "a prepared statement forgets the tenant",
        _STORE,
        "set_config('plan_cache_mode', 'force_custom_plan', true)",
        "set_config('plan_cache_mode', 'auto', true)",
        _PGVECTOR,
    ),
    Bug(
        "the question is rounded as the stored vectors are",
        _STORE,
        'whole.op("<#>", return_type=sa.Double())(_QUERY)',
        'rows.c.v.op("<#>", return_type=sa.Double())(sa.cast(_QUERY, table.halfvec))',
        _PGVECTOR,
    ),
    Bug(
        "a scope is not narrowed by its collections",
        _STORE,
        "_Plans(table, tenant), _Plans(table, tenant, some)",
        "_Plans(table, tenant), _Plans(table, tenant, sa.or_(some, sa.true()))",
        _PGVECTOR,
    ),
    Bug(
        "a deletion leaves its vectors to the next repair",
        _STORE,
        "where(self._rows.c.key == _ANY_KEY), {",
        "where(self._rows.c.key == _ANY_KEY, sa.false()), {",
        _PGVECTOR,
    ),
    Bug(
        "a vector of another document is taken for the chunk's",
        _STORE,
        "chunk.c.key == self._rows.c.key, chunk.c.document_id == self._rows.c.document_id, is_live()",
        "chunk.c.key == self._rows.c.key, is_live()",
        _PGVECTOR,
    ),
)

if __name__ == "__main__":
    raise SystemExit(main(BUGS, module="tests.mutations.stores", description=__doc__))
