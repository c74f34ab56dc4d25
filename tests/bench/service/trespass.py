"""Requests made at random, from the contract the application itself hands out, at what belongs to somebody else."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.bench.service.tenancies import ID, SHARED, Caller, Tenancies

Schema = Mapping[str, Any]

_KINDS = {
    "document_id": "doc_",
    "document_ids": "doc_",
    "file_id": "doc_",
    "file_ids": "doc_",
    "collection_id": "col_",
    "collection_ids": "col_",
    "vector_store_id": "col_",
    "vector_store_ids": "col_",
    "project_ids": "col_",
    "conversation_id": "conv_",
    "job_id": "job_",
    "batch_id": "job_",
    "key_id": "key_",
    "api_key_ids": "key_",
    "budget_id": "bud",
    "event_id": "req_",
    "request_id": "req_",
    "id": "req_",
    "scope_id": "key_",
    "user_id": "Zq",
    "user_ids": "Zq",
    "tenant_id": "Zq",
}
_CURSORS = {"cursor", "page", "after", "before"}
_WORDS = {"question", "query", "text", "content", "input", "prompt", "q", "title", "name", "comment"}
_LEFT_OUT = {"url", "webhook_url", "password", "wait", "timeout", "expires_in", "expires_at", "expires_after"}
_HOSTILE = ("' OR '1'='1", "%", "_", "*", "../..", "null", "0", "-1", "\\", '"', "NOT a", "a* OR b", "{}", "\u202e")
SEES = {"/v1/search", "/v1/ask", "/v1/chat/completions", "/v1/tokens/count", "/v1/embeddings", "/v1/conversations"}
_COMPARISONS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin")
_SAME = {"query": SHARED[0], "top_k": 50}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request, and by whom."""

    caller: Caller
    method: str
    template: str
    path: str
    params: dict[str, str]
    body: bytes | None
    headers: dict[str, str]

    @property
    def sent(self) -> set[str]:
        """The ids in it: an answer that repeats them tells nothing."""
        return set(ID.findall(f"{self.path} {self.params} {(self.body or b'').decode()} {self.headers}"))


class Trespasser:
    """Draws requests over every operation of an OpenAPI document (3.1) and every caller."""

    def __init__(self, made: Tenancies, contract: Schema, draw: random.Random) -> None:
        self._made, self._contract, self._draw = made, contract, draw
        self._operations = [
            (method.upper(), path, operation)
            for path, item in sorted(contract["paths"].items())
            for method, operation in sorted(item.items())
            if method in {"get", "post", "put", "patch", "delete"}
        ]
        # searching and asking reach everything at once: as often as all the rest together
        self._seeing = [operation for operation in self._operations if operation[1] in SEES]
        self._vandal = made.tenants[-1]

    def attempt(self) -> Attempt:
        """The next request. Only the last tenant's callers change what is their own, the others what is not."""
        draw = self._draw
        caller = draw.choice(self._made.callers)
        method, template, operation = draw.choice(self._seeing if draw.random() < 0.4 else self._operations)
        changes = method != "GET" and template not in SEES
        if changes and "{" not in template:
            vandals = [each for each in self._made.callers if each.tenant == self._vandal]
            caller = vandals[0] if template.startswith("/v1/admin/") else draw.choice(vandals)
        elif template.startswith("/v1/admin/") and draw.random() < 0.8:
            caller = self._made.admin(caller.tenant)
        waits = template.endswith("{document_id}/events")  # on a document that its tenant's budget holds back, for long
        foreign_only = waits or (changes and caller.tenant != self._vandal)
        path, params, headers = template, {}, dict(caller.headers)
        for parameter in (self._resolved(each) for each in operation.get("parameters", ())):
            name, where = parameter["name"], parameter["in"]
            if where == "path":
                value = self._id(name, caller, foreign_only=foreign_only)
                path = path.replace("{" + name + "}", quote(value, safe="")).replace(
                    "{" + name + ":path}", quote(value)
                )
            elif where == "query" and (parameter.get("required") or draw.random() < 0.3):
                params[name] = self._parameter(name, parameter["schema"], caller)
        if method == "POST" and draw.random() < 0.15:
            headers["Idempotency-Key"] = f"job-{draw.randrange(3)}"
        if template.startswith("/v1/admin/usage") or template == "/v1/admin/costs":
            headers["Accept"] = draw.choice(["application/json", "text/csv", "application/x-ndjson"])
            params |= {"start_time": "0"} if draw.random() < 0.8 else {}
        body = None
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            same = "Idempotency-Key" in headers and template == "/v1/search"
            chosen = _SAME if same else self._body(template, content["application/json"]["schema"], caller)
            body = json.dumps(chosen).encode()
            headers["Content-Type"] = "application/json"
        return Attempt(caller, method, template, path, params, body, headers)

    def _body(self, template: str, schema: Schema, caller: Caller) -> Any:
        value = self._value(schema, "", caller, 0)
        if template != "/v1/chat/completions" or self._draw.random() < 0.2:
            return value
        # of its many parameters most refuse each other: those that choose what is read, and no others
        own = self._value({"$ref": "#/components/schemas/AskRequest"}, "", caller, 0)
        chosen = {name: own[name] for name in ("collection_ids", "filter", "top_k") if name in own}
        model = "footnote" if self._draw.random() < 0.7 else self._id("model", caller)
        messages = [{"role": "user", "content": self._words(caller)}]
        return {"model": model, "messages": messages, "stream": self._draw.random() < 0.5, "footnote": chosen}

    def _id(self, name: str, caller: Caller, *, foreign_only: bool = False) -> str:
        """Mostly somebody else's id of the right kind, in whatever letters canaries are asked for."""
        draw, made, kind = self._draw, self._made, _KINDS.get(name, "")
        chance = draw.random()
        if chance < 0.1:
            return draw.choice(_HOSTILE)
        if name == "model":
            return f"footnote:{self._id('collection_id', caller)}" if chance < 0.7 else "footnote"
        if name == "generation_id" or name == "number":
            return f"{draw.randrange(-1, 4)}"
        if chance < 0.8 or foreign_only:
            limited = caller.part is not None and draw.random() < 0.4
            but = None if limited else caller.tenant
            found = made.owners.drawn(draw, kind, lambda _, its: its.tenant != but and not caller.may_see(its))
        else:
            found = made.owners.drawn(
                draw, kind, lambda mark, its: its.tenant == caller.tenant and not mark.startswith("key_")
            )
        mark = found or "doc_0"
        if mark.startswith("fn_"):
            return "secret"
        if mark.startswith("doc_") and name == "chunk_id":
            mark = f"{mark}.1.0"
        if mark.startswith("req_") and name == "event_id":
            mark = f"{mark}:{draw.choice(['1', 'q', 'chat', '0'])}"
        return mark.lower()

    def _parameter(self, name: str, schema: Schema, caller: Caller) -> str:
        value = json.dumps(self._filter(caller, 0)) if name == "filter" else self._value(schema, name, caller, 0)
        return value if isinstance(value, str) else json.dumps(value)

    def _value(self, schema: Schema, name: str, caller: Caller, depth: int) -> Any:
        """Something that fits a schema, most of the time."""
        draw, schema = self._draw, self._resolved(schema)
        if depth and draw.random() < 0.02:
            return draw.choice([None, True, -1, 1e308, "", [], {}, [[]], {"$ne": None}])
        if name == "filter":
            return self._filter(caller, 0)
        if name in ("metadata", "attributes"):
            return {
                word: self._words(caller) for word in draw.sample(["tenant_id", "by", "a.b", "__class__", "$where"], 2)
            }
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                options = [one for one in schema[choice] if one.get("type") != "null"] or schema[choice]
                return self._value(draw.choice(options), name, caller, depth)
        if "allOf" in schema:
            return self._value(schema["allOf"][0], name, caller, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return draw.choice(schema["enum"])
        match schema.get("type"):
            case "object":
                return self._object(schema, caller, depth)
            case "array":
                count = draw.randrange(max(1, schema.get("minItems", 0)), 4)
                return [self._value(schema.get("items", {}), name, caller, depth + 1) for _ in range(count)]
            case "integer" | "number":
                least = schema.get("minimum", 0)
                most = min(schema.get("maximum", least + 500), least + 500)
                return draw.randint(int(least), int(most)) if most >= least + 1 else least
            case "boolean":
                return draw.random() < 0.5
            case _ if name in _CURSORS:
                return draw.choice([cursor for each in self._made.cursors.values() for cursor in each])
            case _ if name in _KINDS or name == "model":
                return self._id(name, caller)
            case _:
                return self._words(caller)

    def _object(self, schema: Schema, caller: Caller, depth: int) -> dict[str, Any]:
        if depth > 6:
            return {}
        required = schema.get("required", ())
        made: dict[str, Any] = {}
        for name, its in schema.get("properties", {}).items():
            wanted = name in required or self._draw.random() < (0.3 if name in _KINDS or name == "filter" else 0.15)
            if wanted and (name in required or name not in _LEFT_OUT):
                if name == "limit" and "thresholds" in schema["properties"]:
                    made[name] = 10**12  # a budget the vandal would spend ends its part in this
                    continue
                made[name] = self._value(its, name, caller, depth + 1)
        return made

    def _words(self, caller: Caller) -> str:
        """What a trespasser would look for, or what everybody's documents say."""
        chance = self._draw.random()
        if chance < 0.1:
            return self._draw.choice(_HOSTILE)
        if chance < 0.5:
            return self._draw.choice(SHARED)
        foreign = self._made.owners.drawn(self._draw, "Zq", lambda _, owner: not caller.may_see(owner))
        return f"{self._draw.choice(SHARED)} {(foreign or '').lower()}"

    def _filter(self, caller: Caller, depth: int) -> Any:
        """Conditions, nested, that are true of too much, or on fields that should mean nothing to the search."""
        draw = self._draw
        if draw.random() < 0.4:
            everything: list[dict[str, Any]] = [
                {"$not": {"tenant_id": caller.tenant}},
                {"$or": [{"year": {"$gte": 0}}, {"tenant_id": self._id("tenant_id", caller)}]},
                {"tenant_id": {"$ne": caller.tenant}},
                {"collection_id": {"$nin": []}},
            ]
            return draw.choice(everything)
        if depth < 4 and draw.random() < 0.4:
            op = draw.choice(["$and", "$or", "$not", "$not", "$nor"])
            inner = [self._filter(caller, depth + 1) for _ in range(draw.randrange(1, 4))]
            return {op: inner[0] if op == "$not" else inner}
        field = draw.choice(
            ["tenant_id", "collection_id", "document.tenant_id", "year", "by", "__dict__", "id", "a'--", "$.by", "by\0"]
        )
        value: Any = draw.choice(
            [
                self._id("tenant_id", caller),
                self._id("collection_id", caller),
                2021,
                True,
                None,
                ["x", 1],
                {"$ne": 1},
                1.5,
            ]
        )
        op = draw.choice(_COMPARISONS)
        if op in ("$in", "$nin") and not isinstance(value, list):
            value = [value]
        return {field: {op: value}} if draw.random() < 0.8 else {field: value}

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            found: Any = self._contract
            for step in schema["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            schema = found
        return schema
