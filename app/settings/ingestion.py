"""How uploads become searchable: their size, parsing, chunking, and the two indexes."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field


class IngestionSettings(BaseModel, frozen=True):
    """Limits and options of parsing documents and indexing them."""

    max_upload_mb: int = Field(default=100, ge=1, le=10_000, description="Largest accepted upload, in MiB.")
    archive_members: int = Field(
        default=1000, ge=1, le=10_000, description="Most files in an uploaded zip archive; one with more is refused."
    )
    web_pages: bool = Field(
        default=False,
        description="Whether documents may be fetched from the web by their address; only public addresses, "
        "on ports 80 and 443.",
    )
    ocr: Literal["auto", "off"] = Field(
        default="auto",
        description="Whether scanned pages of PDFs are recognised: auto, when the extra `ocr` is installed, or off.",
    )
    parse_seconds: float = Field(default=120.0, gt=0, description="Longest time to parse a file, in seconds.")
    parse_memory_mb: int = Field(default=2048, ge=512, description="Most memory a parser process may hold, in MiB.")
    parsers: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Files parsed at once, each in a process of its own; unset is two, or one on a single core.",
    )
    chunk_tokens: int = Field(
        default=256,
        ge=32,
        le=8192,
        description="Largest chunk, in embedder tokens; never above the embedder's own limit.",
    )
    chunk_overlap: int = Field(default=32, ge=0, le=1024, description="Tokens neighbouring chunks share.")
    inline_mb: int = Field(
        default=8, ge=1, le=32, description="Largest body of /v1/messages, with the documents sent in it, in MiB."
    )
    inline_documents: int = Field(
        default=20, ge=0, le=1000, description="Most documents in the messages of one request; 0 refuses them."
    )
    inline_chars: int = Field(
        default=500_000,
        ge=1000,
        le=20_000_000,
        description="Most characters of the texts of all documents in one request; each request embeds them again.",
    )
    inline_pages: int = Field(default=200, ge=1, le=20_000, description="Most pages of a PDF in a request.")
    index_device: Literal["cpu", "cuda"] = Field(
        default="cpu",
        description="Where vectors are searched; cuda keeps a copy of the index on a GPU, needs FAISS built for it.",
    )
    vector_store: Literal["faiss", "pgvector"] = Field(
        default="faiss",
        description="What searches vectors: faiss in the memory of this process, or pgvector in the PostgreSQL "
        "database that FOOTNOTE_DATABASE_URL names.",
    )
    lexical: Literal["auto", "sql", "tantivy"] = Field(
        default="auto",
        description="Index for keyword search: sql is the database's own, tantivy one beside it that is faster when "
        "large, auto decides by size.",
    )
    reconcile_hour: Literal["off"] | Annotated[int, Field(ge=0, le=23)] = Field(
        default=3,
        description="Hour of the day, in the machine's time zone, at which database, files and index are compared and "
        "safe repairs are made; off leaves that to `footnote check --repair`.",
    )
