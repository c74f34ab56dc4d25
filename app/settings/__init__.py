"""The settings, one class for each subject. Only this package reads the environment.

Values are frozen, validated once, and documented with their unit. A function takes the group it needs:

    >>> def engine_config(settings: EngineSettings) -> EngineConfig: ...
    >>> engine_config(load_settings(max_running=4))
"""

from typing import Literal, Self

from pydantic import ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import SetupError
from app.settings.access import AccessSettings
from app.settings.answers import AnswerSettings
from app.settings.engine import EngineSettings
from app.settings.ingestion import IngestionSettings
from app.settings.limits import LimitSettings
from app.settings.models import DEFAULT_EMBEDDER, DEFAULT_GENERATOR, EXTRACTIVE, ModelSettings
from app.settings.server import ServerSettings, notify_socket

__all__ = [
    "DEFAULT_EMBEDDER",
    "DEFAULT_GENERATOR",
    "EXTRACTIVE",
    "AccessSettings",
    "AnswerSettings",
    "EngineSettings",
    "IngestionSettings",
    "LimitSettings",
    "ModelSettings",
    "ServerSettings",
    "Settings",
    "load_settings",
    "notify_socket",
]


class Settings(
    ServerSettings,
    AccessSettings,
    LimitSettings,
    IngestionSettings,
    AnswerSettings,
    EngineSettings,
    ModelSettings,
    BaseSettings,
):
    """Every setting, from `FOOTNOTE_*` variables or a `.env` file in the working directory."""

    model_config = SettingsConfigDict(env_prefix="FOOTNOTE_", env_file=".env", frozen=True, extra="forbid")

    @model_validator(mode="after")
    def _groups_agree(self) -> Self:
        if self.remote_url and self.adapter not in ("auto", "none"):
            raise ValueError("FOOTNOTE_ADAPTER names a folder, which FOOTNOTE_REMOTE_URL cannot use")
        if self.extractive:
            for name, given in (
                ("REMOTE_URL", self.remote_url),
                ("ANSWERS=generated", self.answers == "generated"),
                ("DRAFT_MODEL", self.draft_model),
                ("ADAPTER", self.adapter not in ("auto", "none")),
                ("OVERFLOW=summarise", self.overflow == "summarise"),
                ("FOLLOWUP=model", self.followup == "model"),
            ):
                if given:
                    raise ValueError(f"FOOTNOTE_{name} needs a language model, FOOTNOTE_GENERATOR=extractive has none")
        return self

    def quotes_first(self, model_class: str) -> bool:
        """Whether quotes are the answer although a language model is served, which reads as well as its class says."""
        if self.answers == "auto":
            return model_class == "quotes" and not self.extractive
        return self.answers == "quotes" and not self.extractive

    def sure_quotes_answer(self, model_class: str) -> bool:
        """Whether a model of this class words an answer only where quotes do not surely give one."""
        return self.answers == "auto" and model_class == "writer" and not self.extractive

    @property
    def quotes_unconfirmed(self) -> bool:
        """Whether quotes follow an answer of which nothing is verified."""
        return self.unconfirmed != "keep" and not self.extractive

    @property
    def known_class(self) -> Literal["quotes", "writer", "strong"] | None:
        """How well the generator reads: as it is set, or as the default one does; None where a probe has to tell."""
        if self.model_class != "auto":
            return self.model_class
        small = self.generator in {DEFAULT_GENERATOR, EXTRACTIVE} and not self.remote_url
        return "quotes" if small else None


def load_settings(**overrides: object) -> Settings:
    """Settings from the environment, `overrides` (from command-line options) winning.

    Raises:
        SetupError: A setting is unknown or out of range; the message names the variable.
    """
    try:
        return Settings(**overrides)  # type: ignore[arg-type]  # pydantic checks them
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_input=False, include_url=False):
            message = problem["msg"].removeprefix("Value error, ")
            if not problem["loc"]:  # about several settings, which the message names
                lines.append(message)
                continue
            name = "FOOTNOTE_" + "_".join(str(part) for part in problem["loc"]).upper()
            lines.append(f"{name}: {message}")
        raise SetupError("Settings are not usable. " + "; ".join(lines) + ".") from None
