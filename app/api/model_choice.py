"""The choice of a generator: those on this machine, what fits it, and a test of a remote server. No setting changes."""

from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field, SecretStr, StringConstraints

from app.api.dependencies import CorpusDep, PrincipalDep, ServingDep, SettingsDep
from app.api.schemas.shape import RequestBody, ResponseBody, problems
from app.errors import InvalidRequest
from app.models.installed import generators
from app.outbound.model_servers import ServerTest
from app.settings import DEFAULT_GENERATOR, Settings

_PLACEHOLDER = "<the key of the server>"
_SAME_MODEL = "<a folder or Hugging Face id of the same model, for its tokenizer>"

router = APIRouter(tags=["admin"])


class InstalledGeneratorBody(ResponseBody):
    """A generator on this machine."""

    setting: str = Field(description="The value of FOOTNOTE_GENERATOR for it.", examples=["SmolLM2-135M-Instruct"])
    bytes: int = Field(description="Size of its weights on disk.", examples=[269060552])
    needed_bytes: int = Field(description="Estimate of the memory it takes, its cache included.")
    fits: bool = Field(description="Whether that is available, with the memory of the generator in use.")
    in_use: bool = Field(description="Whether it answers now.")
    default: bool = Field(description="Whether it is the one that Footnote brings, which answers by quotes.")


class GeneratorsBody(ResponseBody):
    """The generators on this machine, its memory, and a larger generator that fits."""

    object: Literal["generators"] = Field(default="generators", description="Always `generators`.")
    in_use: str = Field(description="extractive, a model, or a remote server's model.")
    remote: bool = Field(description="Whether a remote server generates.")
    gpu: bool = Field(description="Whether the memory is that of a GPU.")
    total_bytes: int = Field(description="Memory of the GPU or the machine.")
    available_bytes: int = Field(description="How much of it is available now.")
    installed: list[InstalledGeneratorBody] = Field(description="Generators on this machine.")
    larger: str | None = Field(
        description="The largest of a few known models that fits, by its Hugging Face id; null where none does. It was "
        "not measured with Footnote.",
        examples=["Qwen/Qwen3-1.7B"],
    )
    larger_parameters: float | None = Field(description="Its parameters, in billions.", examples=[1.7])


class OfferedModelBody(ResponseBody):
    """A model that can answer: one of this machine, or an open one of the Hugging Face hub."""

    name: str = Field(description="Its name, or its id at the hub.", examples=["Qwen/Qwen3-1.7B"])
    source: Literal["machine", "hub"] = Field(description="Where it is: on this machine, or at the hub.")
    licence: str | None = Field(description="SPDX identifier; null where the model does not tell.", examples=["MIT"])
    bytes: int = Field(description="Size of its weights.", examples=[3400000000])
    needed_bytes: int = Field(description="Estimate of the memory it takes, its cache included.")
    fits: bool = Field(description="Whether that is available, with the memory of the generator in use.")
    installed: bool = Field(description="Whether it is on this machine.")


class OfferedModelsBody(ResponseBody):
    """The models that can answer here, or could."""

    object: Literal["list"] = Field(default="list", description="Always `list`.")
    data: list[OfferedModelBody] = Field(description="Those of this machine, then those of the hub, the smaller first.")


class TestedServer(RequestBody):
    """A server of models to test."""

    url: str = Field(
        min_length=1,
        max_length=2048,
        description="Where its routes begin, usually ending in /v1.",
        examples=["http://127.0.0.1:8080/v1"],
    )
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        default=None, description="A model of the server: it is asked for one token.", examples=[None]
    )
    key: SecretStr | None = Field(
        default=None, max_length=1024, description="Sent as a bearer token; it is not stored.", examples=[None]
    )


class ServedModelBody(ResponseBody):
    """A model of a server."""

    id: str = Field(description="Its name at the server.", examples=["Qwen/Qwen3-8B"])
    context_window: int | None = Field(description="In tokens; null where the server does not tell.")


class ServerTestBody(ResponseBody):
    """The result of testing a server of models. Nothing was changed."""

    object: Literal["server_test"] = Field(default="server_test", description="Always `server_test`.")
    speaks: bool = Field(description="Whether it lists models as OpenAI's protocol does.")
    status: int | None = Field(description="HTTP status of its list of models; null where it could not be reached.")
    models: list[ServedModelBody] = Field(description="The models it lists, at most 100.")
    completes: bool | None = Field(
        description="Whether it completed one token for `model`; null where it was not asked to."
    )
    api: Literal["completions", "chat"] | None = Field(
        description="How it completed it: a prompt of token numbers, or messages, which need no tokenizer here."
    )
    detail: str = Field(description="The result in one sentence.")
    settings: dict[str, str] = Field(description="The settings to write, without secrets; empty unless it `speaks`.")


@router.get("/v1/admin/models", summary="List the generators on this machine")
def list_generators(settings: SettingsDep) -> GeneratorsBody:
    """The generators that are here, the memory they need, and a larger one that would fit."""
    found = generators(settings)
    return GeneratorsBody(
        in_use=_in_use(settings),
        remote=bool(settings.remote_url),
        gpu=found.machine.gpu,
        total_bytes=found.machine.total_bytes,
        available_bytes=found.machine.available_bytes,
        installed=[
            InstalledGeneratorBody(
                setting=one.setting,
                bytes=one.bytes,
                needed_bytes=one.needed_bytes,
                fits=one.fits,
                in_use=one.in_use,
                default=one.setting == DEFAULT_GENERATOR,
            )
            for one in found.installed
        ],
        larger=None if found.larger is None else found.larger.id,
        larger_parameters=None if found.larger is None else found.larger.billions,
    )


@router.get("/v1/models/offered", summary="List models on offer")
def list_offered(settings: SettingsDep) -> OfferedModelsBody:
    """The generators on this machine and open models of the hub, each with its licence and whether it fits.

    Those of the hub were not measured with Footnote. `POST /v1/admin/models` adds one.
    """
    found = generators(settings)
    installed = {one.setting for one in found.installed}
    here = [
        OfferedModelBody(
            name=Path(one.setting).name if Path(one.setting).is_absolute() else one.setting,
            source="machine",
            licence=one.licence,
            bytes=one.bytes,
            needed_bytes=one.needed_bytes,
            fits=one.fits,
            installed=True,
        )
        for one in found.installed
    ]
    hub = [
        OfferedModelBody(
            name=model.id,
            source="hub",
            licence=model.licence,
            bytes=model.bytes,
            needed_bytes=needed,
            fits=fits,
            installed=False,
        )
        for model, needed, fits in found.offered
        if model.id not in installed
    ]
    return OfferedModelsBody(data=[*here, *hub])


@router.post("/v1/admin/models/test-server", summary="Test a server of models", responses=problems(422, 503))
async def test_server(
    body: TestedServer, serving: ServingDep, corpus: CorpusDep, principal: PrincipalDep
) -> ServerTestBody:
    """Ask a server for its models, and with `model` for one token. No setting is changed.

    An address that is not on the public internet is asked only if it is the configured one or FOOTNOTE_WEBHOOK_HOSTS
    names it.
    """
    key = None if body.key is None else body.key.get_secret_value()
    if key is not None and not (key and key.isascii() and key.isprintable()):
        raise InvalidRequest("A key is of printable ASCII characters.", param="key")
    servers = serving.model_servers
    found = await corpus.page_threads.run(
        lambda: servers.test(body.url, model=body.model, key=key), party=principal.tenant_id
    )
    return ServerTestBody(
        speaks=found.speaks,
        status=found.status,
        models=[ServedModelBody(id=one.id, context_window=one.context_window) for one in found.models],
        completes=found.completes,
        api=found.api,
        detail=found.detail,
        settings=_settings(body, found),
    )


def _in_use(settings: Settings) -> str:
    if settings.remote_url:
        return settings.remote_model
    return settings.generator


def _settings(body: TestedServer, found: ServerTest) -> dict[str, str]:
    if not found.speaks:
        return {}
    model = body.model or found.models[0].id
    settings = {"FOOTNOTE_REMOTE_URL": body.url, "FOOTNOTE_REMOTE_MODEL": model}
    if found.api == "chat":
        settings["FOOTNOTE_REMOTE_API"] = "chat"
    else:
        settings["FOOTNOTE_GENERATOR"] = model if "/" in model else _SAME_MODEL
    return settings if body.key is None else {**settings, "FOOTNOTE_REMOTE_API_KEY": _PLACEHOLDER}
