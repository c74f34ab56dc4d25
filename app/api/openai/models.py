"""OpenAI's protocol: models, which name collections to ask."""

import hashlib
from dataclasses import asdict
from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from app.answering.generating.model_class import ModelClass
from app.api.dependencies import (
    CorpusDep,
    ModelsDep,
    PrincipalDep,
    ServingDep,
    SettingsDep,
    collection_named,
    scope_for,
)
from app.api.openai.schemas.chat import FootnoteOptions
from app.api.schemas.bounds import Id
from app.api.schemas.shape import ResponseBody, problems
from app.errors import NotFound
from app.probing.probe import ClassStanding
from app.server.serving import Models, Serving
from app.server.state import DocumentsState
from app.settings import Settings
from app.types import Principal
from retrieval.types import Scope


class ShareBody(ResponseBody):
    """A number of cases."""

    count: int = Field(description="Cases of which it is so.", examples=[14])
    of: int = Field(description="Cases that were asked.", examples=[20])


class ReadingBody(ResponseBody):
    """What a language model did with forty questions about invented documents."""

    reads: ShareBody = Field(description="Questions about one fact that it answered right.")
    joins: ShareBody = Field(description="Questions that need two sources, answered right.")
    forms: ShareBody = Field(description="Lists and tables that are whole and have their form.")
    refuses: ShareBody = Field(description="Questions with an answer that it said the sources do not answer.")
    declines: ShareBody = Field(description="Questions without an answer that it said so of.")


class ProbeBody(ResponseBody):
    """How well a language model reads, and how that is known."""

    model_class: ModelClass = Field(
        description="quotes: it reads worse than what selects quotes, which answer. writer: it words one or two "
        "sentences. strong: it joins sources, and keeps lists and tables."
    )
    source: Literal["set", "measured", "measuring", "unknown"] = Field(
        description="Whether the class is set (or known of the default model), was measured, is being measured, or is "
        "not known; quotes answer until it is."
    )
    done: int = Field(description="Questions that were asked by the measurement under way.", examples=[12])
    total: int = Field(description="Questions of a measurement.", examples=[40])
    measured_at: float | None = Field(description="Unix seconds; null where it was not measured.")
    reading: ReadingBody | None = Field(description="What was measured; null where nothing was.")


class ModelBody(ResponseBody):
    """A model for chat completions, or the embedder."""

    id: str = Field(description="Pass as `model`.", examples=["footnote"])
    object: Literal["model"] = Field(default="model", description="Always `model`.")
    created: int = Field(description="Unix seconds.")
    owned_by: str = Field(default="footnote", description="Always `footnote`.")
    generator: str | None = Field(
        description="The language model; null for the embedder.", examples=["SmolLM2-135M-Instruct"]
    )
    answers: Literal["quotes", "generated"] | None = Field(
        default=None,
        description="What answers questions: quotes of the documents, or text that the language model writes. With "
        "quotes it writes only what they cannot fill, such as a JSON document; a model of the class `writer` writes "
        "what quotes do not surely answer in a few words. Null for the embedder.",
    )
    probe: ProbeBody | None = Field(
        default=None, description="How well the language model reads; null for the embedder and without one."
    )
    embedder: str = Field(description="The embedding model.", examples=["all-MiniLM-L6-v2"])
    context_window: int = Field(
        description="Maximum tokens of prompt and answer together, or of one text to embed.", examples=[8192]
    )
    dimensions: int | None = Field(default=None, description="Dimensions of the embedder's vectors; null for others.")


class ModelList(ResponseBody):
    """A list of models."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[ModelBody] = Field(description="`footnote`, one per collection, and the embedder.")


router = APIRouter(tags=["openai"])

NAME = "footnote"
"""Name of the model that asks every collection of the key."""


@router.get("/v1/models", summary="List models", responses=problems())
def list_models(
    corpus: CorpusDep, settings: SettingsDep, serving: ServingDep, models: ModelsDep, principal: PrincipalDep
) -> ModelList:
    """`footnote` asks every collection of the key, `footnote:NAME` one; the embedder makes embeddings."""
    found = corpus.collections.list(principal.tenant_id, allowed=principal.collections)
    names = [NAME, *(f"{NAME}:{collection.name}" for collection in found)]
    asked = (_model(name, settings, serving, models) for name in names)
    return ModelList(data=[*asked, _embedder(serving, models)])


@router.get("/v1/models/{model:path}", summary="Read a model", responses=problems(404))
def read_model(
    model: Id,
    corpus: CorpusDep,
    settings: SettingsDep,
    serving: ServingDep,
    models: ModelsDep,
    principal: PrincipalDep,
) -> ModelBody:
    """A model, with its language model and embedder."""
    if model == models.embedder.info.model:
        return _embedder(serving, models)
    collection_of(model, corpus, principal)
    return _model(model, settings, serving, models)


def collection_of(model: str, corpus: DocumentsState, principal: Principal) -> str | None:
    """The id of the collection that a model name stands for, None for all.

    Raises:
        NotFound: The model or its collection does not exist for this caller.
    """
    name, _, collection = model.partition(":")
    if name != NAME or (":" in model and not collection):
        raise NotFound(f"There is no model '{model[:100]}'; ask 'footnote' or 'footnote:COLLECTION'.")
    if not collection:
        return None
    found = collection_named(corpus, principal, collection)
    if found is None:
        raise NotFound("There is no such collection.")
    return found


def chat_scope(model: str, options: FootnoteOptions, corpus: DocumentsState, principal: Principal) -> Scope:
    """The scope of a chat: the collection of the model's name, else those of the options.

    Raises:
        NotFound: The model, or a collection, does not exist for this caller.
        InvalidFilter: The filter is malformed.
    """
    named = collection_of(model, corpus, principal)
    return scope_for(
        corpus,
        principal,
        collection_ids=[named] if named is not None else options.collection_ids,
        document_ids=options.document_ids,
        raw_filter=options.filter,
    )


def fingerprint(serving: Serving, models: Models) -> str:
    """OpenAI's `system_fingerprint`: the same seed and request give the same answer while it stays."""
    engine, embedder = models.engine.info, models.embedder.info
    parts = (
        serving.version,
        engine.model,
        engine.revision,
        engine.device,
        engine.dtype,
        embedder.model,
        embedder.revision,
    )
    return f"fp_{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


def _model(name: str, settings: Settings, serving: Serving, models: Models) -> ModelBody:
    info = models.engine.info
    return ModelBody(
        id=name,
        created=int(serving.started_at),
        generator=info.model,
        answers="quotes" if settings.extractive or settings.quotes_first(serving.served_class()) else "generated",
        probe=None if serving.probe is None else _probe(serving.probe.standing),
        embedder=models.embedder.info.model,
        context_window=info.context_window,
    )


def _probe(standing: ClassStanding) -> ProbeBody:
    result = standing.result
    return ProbeBody(
        model_class=standing.model_class,
        source=standing.source,
        done=standing.done,
        total=standing.total,
        measured_at=None if result is None else result.measured_at,
        reading=None if result is None else ReadingBody.model_validate(asdict(result.reading)),
    )


def _embedder(serving: Serving, models: Models) -> ModelBody:
    info = models.embedder.info
    return ModelBody(
        id=info.model,
        created=int(serving.started_at),
        generator=None,
        embedder=info.model,
        context_window=info.max_tokens,
        dimensions=info.dim,
    )
