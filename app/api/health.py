"""Routes of operation: liveness, readiness and Prometheus metrics."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import Field

from app.api.dependencies import CorpusDep, ServingDep, SettingsDep, TelemetryDep, UsageDep
from app.api.schemas.shape import ResponseBody
from app.errors import AppError

router = APIRouter(tags=["operations"])


class Health(ResponseBody):
    """The process is alive."""

    status: str = Field(default="ok", description="Always `ok`.", examples=["ok"])
    version: str = Field(description="Footnote's version.", examples=["0.1.0"])


class Readiness(ResponseBody):
    """Whether the server can serve requests."""

    ready: bool = Field(description="Whether questions can be answered and documents ingested.")
    reasons: list[str] = Field(description="The reasons, when it is not ready.")
    checks: dict[str, Any] = Field(description="State of each component.")


@router.get("/healthz", summary="Liveness")
def healthz(serving: ServingDep) -> Health:
    """Whether the process is alive; models and database are not checked, see /readyz."""
    return Health(version=serving.version)


@router.get(
    "/readyz",
    response_model=Readiness,
    summary="Readiness",
    responses={503: {"model": Readiness, "description": "Not ready, with the reasons."}},
)
def readyz(
    request: Request, corpus: CorpusDep, usage: UsageDep, serving: ServingDep, settings: SettingsDep
) -> Response:
    """200 when every component works, else 503 with the reasons."""
    reasons: list[str] = []
    checks: dict[str, Any] = {}
    try:
        checks["documents_waiting"] = corpus.jobs.queued()
    except AppError as error:
        reasons.append(f"database: {error}")
    models, drain = serving.models, request.app.state.drain
    if drain.begun:
        reasons.append("server: stopping")
        checks["draining"] = {"running": drain.running, "ending": drain.ended}
    if models is None and serving.loading is not None:
        reasons.append("models: loading" if serving.loading.failure is None else "models: failed")
        step = serving.loading.step
        checks["models"] = {"loading": step.name, "done": step.done, "total": step.total}
    elif models is None:
        reasons.append("models: not loaded")
    else:
        stats = models.engine.stats()
        engine_alive = models.engine.alive()
        checks["engine"] = {
            "alive": engine_alive,
            "running": stats.running,
            "waiting": stats.waiting,
            "restarts": stats.restarts,
            "cache": {
                "bytes": stats.cached_blocks * stats.block_bytes,
                "limit_bytes": stats.cache_bytes,
                "given_back_bytes": stats.given_back_bytes,
            },
        }
        if stats.path is not None:
            info = models.engine.info
            checks["engine"]["path"] = {"device": info.device, "dtype": info.dtype, **asdict(stats.path)}
        checks["index"] = {
            "generation": models.index.generation,
            "vectors": len(models.index),
            "lexical": models.lexical.serving,
            "embedder": models.embedder.info.model,
        }
        embedder_swap = serving.embedder_swap
        if embedder_swap is not None and (building := embedder_swap.building) is not None:
            checks["reembedding"] = {
                "generation": building.generation,
                "done": building.done,
                "total": building.total,
                "stalled": building.error is not None,
            }
        ingesting = models.worker.alive() or (embedder_swap is not None and embedder_swap.swapping)
        checks["ingestion"] = {"alive": ingesting} if settings.ingests else {"elsewhere": True}
        if not engine_alive:
            reasons.append("engine: stopped")
        if settings.ingests and not ingesting:
            reasons.append("ingestion: stopped")
    looked = usage.reconciliation.last
    checks["ledger"] = {  # only shown: a ledger that disagrees does not make the server unready
        "ok": looked.ok if looked is not None else None,
        "as_of": looked.as_of if looked is not None else None,
        "mismatches": list(looked.mismatches) if looked is not None else [],
    }
    body = Readiness(ready=not reasons, reasons=reasons, checks=checks)
    return JSONResponse(body.model_dump(), status_code=200 if body.ready else 503)


@router.get("/metrics", response_class=PlainTextResponse, summary="Prometheus metrics")
def metrics(telemetry: TelemetryDep) -> Response:
    """Counts and gauges, without names of documents, tenants or people."""
    return Response(generate_latest(telemetry.metrics.registry), media_type=CONTENT_TYPE_LATEST)
