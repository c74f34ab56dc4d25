"""`python -m tests.mutations.security`: faults by which strangers stop or enter a server; each must fail a test."""

from tests.mutations.planting import Bug, main

BUGS = (
    Bug(
        "the gate judges another path than the one that is routed",
        "app/api/root_path.py",
        '    return str(scope["state"]["route_path"])\n',
        '    return str(scope["path"])\n',
        ("tests/app/api/test_root_path_access.py", "tests/app/api/test_root_path.py"),
    ),
    Bug(
        "a backup that cannot be restored",
        "app/documents/ports.py",
        "(0|[1-9][0-9]{0,9})",
        "([1-9][0-9]{0,9})",
        ("tests/app/backup/test_member_names.py",),
    ),
    Bug(
        "an exponential pattern",
        "ingestion/sniff.py",
        """    while piece := _BEFORE_ROOT.match(start, at):
        at = piece.end()
    return at
""",
        """    del at
    root = re.match(rf"(?:{_BEFORE_ROOT.pattern})*(?={_HTML_START.pattern})", start, re.IGNORECASE | re.DOTALL)
    return root.end() if root else 0
""",
        ("tests/ingestion/test_sniff.py",),
    ),
    Bug(
        "rules that read a history again for each of its words",
        "app/answering/languages/noun_phrases.py",
        "_stands_out(text, first) or first.text in within:\n",
        "_stands_out(text, first) or first.text in {\n"
        "                word.text for word in tokens if word.start not in _openings(text, tokens)\n"
        "            }:\n",
        ("tests/app/answering/understanding/followup/test_history.py",),
    ),
    Bug(
        "token ids without a limit",
        "app/api/openai/schemas/embeddings.py",
        "Field(min_length=1, max_length=MAX_IDS, fail_fast=True)",
        "Field(min_length=1)",
        ("tests/contracts/test_request_bounds.py",),
    ),
    Bug(
        "a large body without a key",
        "app/api/gate/body_limits.py",
        "PUBLIC_BYTES = 16 * KIB",
        "PUBLIC_BYTES = 16 * MIB",
        ("tests/app/api/gate/test_body_limits.py",),
    ),
    Bug(
        "a body that is large because it says that it is a form",
        "app/api/gate/body_limits.py",
        "    return None if kind is BodyKind.FILE and is_multipart(scope) else kind\n",
        "    return None if is_multipart(scope) else kind\n",
        ("tests/app/api/gate/test_body_limits.py",),
    ),
    Bug(
        "an answer as long as the request is wrong",
        "app/api/field_problems.py",
        "_MOST = 20\n",
        "_MOST = 20_000\n",
        ("tests/app/api/test_field_problems.py",),
    ),
    Bug(
        "a number without a limit",
        "app/api/contents.py",
        "int | None, Query(ge=1, le=LARGEST_INTEGER, description=",
        "int | None, Query(ge=1, description=",
        ("tests/contracts/test_number_ranges.py",),
    ),
    Bug(
        "guesses beside a good key",
        "app/api/sessions.py",
        """    if authorization is not None and authorization.casefold().startswith("bearer"):
""",
        """    if False:
""",
        ("tests/app/access/test_session_routes.py",),
    ),
    Bug(
        "files that other users of the machine may read",
        "app/cli/main.py",
        "    os.umask(_ONLY_THE_OWNER)\n",
        "",
        ("tests/app/cli/test_file_modes.py",),
    ),
    Bug(
        "a deleted text that is replayed",
        "app/db/documents.py",
        """            forget_answers(connection, tenant_id)
            return removal
""",
        """            return removal
""",
        ("tests/app/api/gate/test_forgotten_answers.py",),
    ),
    Bug(
        "conversations without end",
        "app/db/conversations.py",
        "        if count >= self._most:\n",
        "        if False:\n",
        ("tests/app/api/test_conversations.py", "tests/app/db/test_conversations.py"),
    ),
    Bug(
        "event streams without end",
        "app/admission/event_streams.py",
        "            if self._open[name] >= limit:\n",
        "            if False:\n",
        ("tests/app/api/test_document_events.py", "tests/app/admission"),
    ),
    Bug(
        "slow peers in the threads of every request",
        "app/outbound/threads.py",
        "        if not self._free or self._used[party] >= self._share:\n",
        "        return await anyio.to_thread.run_sync(call)\n        if not self._free:\n",
        ("tests/app/api/test_slow_peers.py",),
    ),
    Bug(
        "the API's description made on the event loop",
        "app/api/openapi.py",
        "    def document(request: Request) -> Response:\n",
        "    async def document(request: Request) -> Response:\n",
        ("tests/fuzz/test_contract.py",),
    ),
    Bug(
        "an answer that anybody of the tenant stops",
        "app/answering/running/registry.py",
        "if may_stop(principal, asker)]",
        "if principal.tenant_id == asker.tenant_id]",
        ("tests/app/answering/running/test_registry.py",),
    ),
    Bug(
        "a quote that hides the quotes behind it",
        "app/answering/quoting/rendering.py",
        'literal(line) if form == "markdown" else _plain(line)',
        'line if form == "markdown" else _plain(line)',
        ("tests/app/answering/quoting/test_literal.py",),
    ),
    Bug(
        "a document's sentence as the model's own earlier words",
        "app/answering/conversations/conversations.py",
        "_unquoted(turn, record), asks",
        "turn.answer, asks",
        ("tests/app/answering/conversations/test_conversations.py",),
    ),
    Bug(
        "a document that takes another's place by its name",
        "app/answering/understanding/documents/names.py",
        "wanted.whole and _says_no_more(candidate, wanted)",
        "_says_no_more(candidate, wanted)",
        ("tests/app/answering/understanding/documents/test_names.py",),
    ),
    Bug(
        "a parser with a network",
        "ingestion/sandbox.py",
        "    calls = refuse_calls(local_sockets=soffice is not None)\n",
        "    calls = True\n",
        ("tests/ingestion/test_sandbox.py",),
    ),
    Bug(
        "a parser that reads every file",
        "ingestion/sandbox.py",
        "    files = restrict_files(_allowed(work, shown, soffice))\n",
        "    files = True\n",
        ("tests/ingestion/test_sandbox.py",),
    ),
    Bug(
        "a prompt cache that keeps its memory",
        "generation/relief.py",
        "        freed = self._cache.shed(0.5)\n",
        "        freed = 0\n",
        ("tests/generation/test_relief.py",),
    ),
)


if __name__ == "__main__":
    raise SystemExit(main(BUGS, module="tests.mutations.security", description=__doc__))
