"""Loads the configured models: embedder, generator, reranker, span reader, judge and verifier."""

from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import SetupError
from app.models.adapter import adapter_for
from app.models.candidate_judge import configured_judge
from app.models.folder import resolve
from app.models.span_reader import configured_reader
from app.settings import EngineSettings, ModelSettings, Settings
from app.telemetry.timing import traceparent
from generation.accelerator import driver_version, why_no_gpu
from generation.config import EngineConfig
from generation.ports import Engine, Tokenizer
from generation.remote_config import RemoteConfig
from retrieval.ports import CandidateJudge, ChunkingEmbedder, EntailmentJudge, Reranker, SpanReader

if TYPE_CHECKING:
    from generation.tokenizer import ChatTokenizer

_GPU_RUNNING = 64  # sequences, as many as decode steps are captured for
_GPU_STEP_TOKENS = 2048


def load_embedder(settings: ModelSettings) -> ChunkingEmbedder:
    """Loads the configured embedder.

    Raises:
        SetupError: The setting cannot be resolved.
        EmbedderUnavailable: The model is not installed, cannot be loaded, or cannot be run so.
    """
    from retrieval.encoder import SentenceEncoder

    return SentenceEncoder.load(
        resolve(settings.embedder, models_dir=settings.models_dir),
        device=settings.device,
        dtype=settings.dtype if settings.embedder_dtype == "auto" else settings.embedder_dtype,
        dimensions=settings.embedder_dimensions,
    )


def load_entailment(settings: ModelSettings) -> EntailmentJudge | None:
    """Loads the configured verifier model; None when none is configured.

    Raises:
        SetupError: The setting cannot be resolved.
        VerifierUnavailable: The model is not installed, cannot be loaded, or judges no pairs.
    """
    if not settings.verifier:
        return None
    from retrieval.entailment import EntailmentModel

    return EntailmentModel.load(
        resolve(settings.verifier, models_dir=settings.models_dir), device=settings.device, dtype=settings.dtype
    )


def load_reranker(settings: ModelSettings) -> Reranker | None:
    """Loads the configured reranker; None when none is configured.

    Raises:
        SetupError: The setting cannot be resolved.
        RerankerUnavailable: The model is not installed, cannot be loaded, or is no reranker.
    """
    if not settings.reranker:
        return None
    from retrieval.cross_encoder import CrossEncoderReranker

    return CrossEncoderReranker.load(
        resolve(settings.reranker, models_dir=settings.models_dir), device=settings.device, dtype=settings.dtype
    )


def load_reader(settings: ModelSettings) -> SpanReader | None:
    """Loads the configured span reader; None when none is configured or none belongs to the embedder.

    Raises:
        SetupError: The setting cannot be resolved, or names a reader of another embedder.
        ReaderUnavailable: The reader or its base cannot be loaded.
    """
    config = configured_reader(settings)
    if config is None:
        return None
    from retrieval.span_reader import EncoderSpanReader

    return EncoderSpanReader.load(
        Path(config.folder),
        Path(resolve(settings.embedder, models_dir=settings.models_dir)),
        name=config.name,
        calibration=config.calibration,
        device=settings.device,
        dtype=settings.dtype,
    )


def load_judge(settings: ModelSettings) -> CandidateJudge | None:
    """Loads the configured judge of candidates; None when none is configured or its base is not on this machine.

    Raises:
        SetupError: The setting cannot be resolved, or names a judge of another model.
        JudgeUnavailable: The judge or its base cannot be loaded.
    """
    config = configured_judge(settings)
    if config is None:
        return None
    from retrieval.candidate_judge import LanguageModelJudge

    return LanguageModelJudge.load(
        Path(config.folder),
        Path(config.base_folder),
        name=config.name,
        device=settings.device,
        dtype=settings.dtype,
    )


def load_generator(settings: Settings, embedder: ChunkingEmbedder) -> tuple[Tokenizer, str, Engine]:
    """Loads the configured generator: its tokenizer, the tokenizer's revision, and the engine.

    Raises:
        SetupError: The generator is not on this machine, or settings of it cannot be used.
        ModelUnavailable: It cannot be loaded.
    """
    if settings.extractive:
        from app.models.extractive import EmbedderTokenizer, NoEngine

        revision = embedder.info.revision
        nothing = NoEngine(revision=revision, context_window=settings.max_context_tokens)
        return EmbedderTokenizer(embedder.tokenizer), revision, nothing
    from generation.byte_tokenizer import ByteTokenizer
    from generation.tokenizer import ChatTokenizer

    if settings.remote_api == "chat":
        by_bytes = ByteTokenizer()
        return by_bytes, by_bytes.revision, _remote_engine(settings, by_bytes)
    generator = resolve(settings.generator, models_dir=settings.models_dir)
    tokenizer = ChatTokenizer.load(generator)
    if settings.remote_url:
        return tokenizer, tokenizer.revision, _remote_engine(settings, tokenizer)
    return tokenizer, tokenizer.revision, _local_engine(settings, generator, tokenizer)


def _local_engine(settings: Settings, generator: str, tokenizer: "ChatTokenizer") -> Engine:
    """The engine in this process. Its weights are loaded once, and it is restarted when its thread dies."""
    from generation.engine import LocalEngine
    from generation.supervisor import SupervisedEngine

    return SupervisedEngine(LocalEngine.loader(engine_config(settings, generator=generator), tokenizer))


def _remote_engine(settings: EngineSettings, tokenizer: Tokenizer) -> Engine:
    """An engine over a remote server; the tokenizer must belong to its model, where the server is sent token ids."""
    from generation.remote import RemoteEngine

    return RemoteEngine.load(remote_config(settings), tokenizer, traceparent=traceparent)


def remote_config(settings: EngineSettings) -> RemoteConfig:
    """The remote engine's configuration from the settings.

    Raises:
        SetupError: They cannot be used.
    """
    key = settings.remote_api_key
    try:
        return RemoteConfig(
            base_url=settings.remote_url,
            model=settings.remote_model,
            api=settings.remote_api,
            api_key=key.get_secret_value() if key is not None else None,
            context_window=settings.context_window,
            max_running=settings.max_running,
            max_waiting=settings.max_waiting,
            max_waiting_tokens=settings.max_waiting_tokens,
        )
    except ValueError as error:
        raise SetupError(f"The remote server's settings are not usable: {error}.") from None


def sized(settings: Settings) -> Settings:
    """The settings with the sizes of a GPU's batches, where a GPU of this machine generates and they are not set.

    A step of 64 rows reads the weights once, as one of 8 does. Imports torch where there is an NVIDIA driver.
    """
    elsewhere = settings.extractive or settings.remote_url or settings.device == "cpu"
    if elsewhere or (settings.device == "auto" and driver_version() is None) or why_no_gpu() is not None:
        return settings
    step_tokens, max_running = settings.step_tokens, settings.max_running
    if "step_tokens" not in settings.model_fields_set:
        step_tokens = max(step_tokens, _GPU_STEP_TOKENS)
    if "max_running" not in settings.model_fields_set:
        max_running = min(_GPU_RUNNING, step_tokens)
    return settings.model_copy(update={"step_tokens": step_tokens, "max_running": max_running})


def engine_config(settings: Settings, *, generator: str) -> EngineConfig:
    """The local engine's configuration from the settings, batches sized for its device.

    Raises:
        SetupError: The draft model is not on this machine, or the adapter is not usable with the generator.
    """
    settings = sized(settings)
    draft_model = resolve(settings.draft_model, models_dir=settings.models_dir) if settings.draft_model else None
    return EngineConfig(
        model=generator,
        adapter=adapter_for(settings, generator=generator),
        device=settings.device,
        dtype=settings.dtype,
        max_running=settings.max_running,
        max_waiting=settings.max_waiting,
        max_waiting_tokens=settings.max_waiting_tokens,
        step_tokens=settings.step_tokens,
        context_window=settings.context_window,
        kv_cache_bytes=settings.kv_cache_mb << 20 if settings.kv_cache_mb is not None else None,
        fuse=settings.fuse,
        weights=settings.weights,
        speculation=settings.speculation,
        draft_model=draft_model,
    )
