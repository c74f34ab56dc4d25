"""Metadata filters, valid and nearly valid, deep and wide, asked of the served application by every way that takes one.

A valid filter keeps the documents that the reference keeps; any other is refused with a 422 problem.
"""

import json
import time
from collections import Counter
from typing import Any

import httpx
from hypothesis import strategies as st

from tests.fuzz.grammars.filter_reference import is_valid, keeps
from tests.fuzz.grammars.openai_filters import in_openai_form, in_our_form
from tests.fuzz.target import Case
from tests.server import ADMIN_KEY

NAMES = ["a", "b.c", 'q"u', "back\\slash", "[0]", "größe", "日本", "a b", "'", "x" * 128, "type", "and"]
TEXTS = ["", "a", "A", "b", "true", "1", "null", "ä", "z", "😀", "\uffff", 'q"', "%", "[1]", "{}", "\n", "a\u2028b"]
NUMBERS = [0, 1, -1, 2, 0.0, -0.0, 1.0, 1.5, -1.5, 2**53, -(2**53), 0.1, 1e-9, 0.30000000000000004, 123456.789]

_COMPARING = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]
_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(TEXTS),
    st.sampled_from(NUMBERS),
    st.integers(-(2**53), 2**53),
    st.floats(-1e6, 1e6),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4),
)
_ordered = st.sampled_from(TEXTS) | st.sampled_from(NUMBERS)
_names = st.sampled_from(NAMES)
_metadata = st.dictionaries(_names, _scalars | st.lists(_scalars, max_size=3), max_size=4)
_values = st.lists(_scalars, max_size=3)
_operators = st.one_of(
    st.dictionaries(st.sampled_from(["$eq", "$ne"]), _scalars, min_size=1),
    st.dictionaries(st.sampled_from(["$in", "$nin"]), _values, min_size=1),
    st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), _ordered, min_size=1),
    st.builds(lambda op, value, low: {op: value, "$gt": low}, st.sampled_from(["$eq", "$ne"]), _scalars, _ordered),
)
_fields = st.dictionaries(
    _names, st.one_of(_scalars, _operators, _operators.map(lambda inner: {"$not": inner})), min_size=1, max_size=3
)
_filters: st.SearchStrategy[Any] = st.recursive(
    _fields,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3), min_size=1),
        inner.map(lambda one: {"$not": one}),
        st.builds(lambda fields, one: {**fields, "$not": one}, _fields, inner),
    ),
    max_leaves=6,
)


def _nested(filter_: Any, ops: list[str]) -> Any:
    for op in ops:
        filter_ = {op: filter_} if op == "$not" else {op: [filter_]}
    return filter_


_deep = st.builds(_nested, _fields, st.lists(st.sampled_from(["$and", "$or", "$not"]), max_size=9))
_deeper = st.builds(_nested, st.just({"a": 1}), st.lists(st.just("$not"), min_size=100, max_size=400))
_wide = st.one_of(
    st.integers(60, 68).map(lambda count: {"$or": [{"a": number} for number in range(count)]}),
    st.integers(60, 68).map(lambda count: {f"n{number}": number for number in range(count)}),
    st.integers(998, 1003).map(lambda count: {"a": {"$in": list(range(count))}}),
    st.integers(998, 1003).map(lambda count: {"a": {"$nin": [f"t{number}" for number in range(count)]}}),
    st.integers(120, 135).map(lambda length: {"n" * length: 1}),
)
_misfits: list[Any] = [
    {}, [], None, True, 1, "a", [[]], {"$gt": 1}, {"$x": 1}, {"$and": []}, {"$or": {}}, {"$not": []}, {"": 1},
    {"$not": None}, {"a": {}}, {"a": {"$x": 1}}, {"a": {"b": 1}}, {"a": [1]}, {"a": {"$in": 1}}, {"a": {"$eq": []}},
    {"a": {"$gt": None}}, {"a": {"$gt": True}}, {"a": {"$not": 1}}, {"a": {"$in": [[1]]}}, {"a": 2**63}, {"a": 1e400},
    {"a": float("nan")}, {"a": "\0"}, {"a": "\ud800"}, {"\udfff": 1}, {"a\0": 1}, {"a": {"$in": ["\ud800"]}},
    {"a": 10**40}, {"$AND": [{"a": 1}]}, {"a": {"$and": [{"$eq": 1}]}}, {"a": {"$eq": {"$eq": 1}}}, {"$where": "1"},
]  # fmt: skip
_near = st.one_of(
    st.sampled_from(_misfits),
    st.builds(lambda one, inner: {"$and": [one, inner]}, _fields, st.sampled_from(_misfits)),
    st.builds(lambda one, inner: {"$or": [inner, one]}, _fields, st.sampled_from(_misfits)),
    st.builds(lambda one, inner: {**one, "$not": inner}, _fields, st.sampled_from(_misfits)),
    st.builds(lambda one, inner: {**one, "a": inner}, _fields, st.sampled_from(_misfits)),
    st.builds(lambda op, inner: {"a": {op: inner}}, st.sampled_from([*_COMPARING, "$in"]), st.sampled_from(_misfits)),
)

_KEPT_FIELDS: list[dict[str, Any]] = [
    {},
    *({"a": value} for value in (None, True, False, 0, 1, 1.5, "", "a", "1", "true", [], [1, "a"], [None], ["😀"])),
    *({name: 1, "a": name} for name in NAMES[1:]),
    {"a": 2, "b.c": "x", "größe": -1.5},
    {"a": 2**53, "日本": 0.1},
    {"a": "\uffff", "'": 0.30000000000000004},
]


class FilterTarget:
    """Filters asked of the served application, whose documents have many kinds of metadata."""

    name = "filters"
    cases: st.SearchStrategy[Case] = st.fixed_dictionaries(
        {
            "by": st.sampled_from(["list", "search", "store"]),
            "metadata": _metadata,
            "filter": st.one_of(_filters, _filters, _deep, _wide, _near, _near, _deeper),
        }
    )

    def __init__(self, url: str) -> None:
        """Upload the documents into a collection of their own."""
        self.answers: Counter[tuple[str, int]] = Counter()
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {ADMIN_KEY}"}, timeout=60, trust_env=False
        )
        self._collection = self._http.post("/v1/collections", json={"name": "filtered"}).raise_for_status().json()["id"]
        self._fields: dict[str, dict[str, Any]] = {}
        for number, metadata in enumerate([*_KEPT_FIELDS, {}]):
            body = {
                "text": f"Note {number} of the harbour.",
                "filename": f"{number}.txt",
                "collection_id": self._collection,
                "metadata": metadata,
            }
            document = self._http.post("/v1/documents", json=body).raise_for_status().json()
            self._changing = document["id"]
            self._fields[document["id"]] = metadata
        self._wait_until_indexed()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def check(self, case: Case) -> None:
        """One document gets the case's metadata, then the filter is asked."""
        self._send("PATCH", f"/v1/documents/{self._changing}", {"metadata": case["metadata"]}).raise_for_status()
        self._fields[self._changing] = case["metadata"]
        raw = case["filter"]
        match case["by"]:
            case "list":
                response, field = self._list(raw), "id"
            case "search":
                response, field = self._search(raw), "document_id"
            case _:
                theirs = in_openai_form(raw)
                response, field = self._search_store(theirs), "file_id"
                raw = None if theirs is None else in_our_form(theirs)
        if not is_valid(raw):
            _require_refusal(response)
            return
        assert response.status_code == 200, f"a valid filter is refused: {response.text[:200]}"
        found = {item[field] for item in response.json()["data"]}
        expected = {document for document, metadata in self._fields.items() if keeps(raw, metadata)}
        wrong = [self._fields[document] for document in sorted(found ^ expected)]
        assert found == expected, (
            f"found {len(found)} documents instead of {len(expected)}; the first wrong: {wrong[0]}"
        )

    def _wait_until_indexed(self) -> None:
        deadline = time.monotonic() + 60
        query = {"collection_id": self._collection, "status": "indexed", "limit": "200"}
        while len(self._http.get("/v1/documents", params=query).json()["data"]) < len(self._fields):
            assert time.monotonic() < deadline, "the documents are not indexed"
            time.sleep(0.05)

    def _list(self, raw: Any) -> httpx.Response:
        query = {"collection_id": self._collection, "limit": "200", "filter": json.dumps(raw)}
        return self._send("GET", "/v1/documents", params=query)

    def _search(self, raw: Any) -> httpx.Response:
        # top_k is above the number of documents: a search by meaning finds all that the filter keeps
        body = {"query": "harbour", "mode": "dense", "top_k": 200, "collection_ids": [self._collection], "filter": raw}
        return self._send("POST", "/v1/search", body)

    def _search_store(self, raw: Any) -> httpx.Response:
        body = {"query": "harbour", "max_num_results": 50, "filters": raw}
        return self._send("POST", f"/v1/vector_stores/{self._collection}/search", body)

    def _send(self, method: str, path: str, body: Any = None, params: dict[str, str] | None = None) -> httpx.Response:
        content = (
            None if body is None else json.dumps(body)
        )  # json.dumps writes NaN and half characters, httpx does not
        response = self._http.request(
            method, path, content=content, params=params, headers={"Content-Type": "application/json"}
        )
        operation = path.replace(self._changing, "{document_id}").replace(self._collection, "{vector_store_id}")
        self.answers[f"{method} {operation}", response.status_code] += 1
        return response


def _require_refusal(response: httpx.Response) -> None:
    assert response.status_code == 422, f"an invalid filter got {response.status_code}: {response.text[:200]}"
    assert response.headers["content-type"] == "application/problem+json", response.headers["content-type"]
    problem = response.json()
    assert problem["type"].startswith("urn:footnote:problem:"), problem
    assert problem["detail"], problem
