"""Documents with headings in a database, and questions about them."""

from app.answering.question import Question
from app.db.jobs import JobRepository
from app.types import Principal, Role
from ingestion.types import Block, BlockKind, ChunkDraft, Extraction, MediaType, PageRange
from retrieval.types import Scope
from tests.app.db.samples import Library, vectors_of


def question(text: str, **fields: object) -> Question:
    return Question(
        **{  # type: ignore[arg-type]
            "request_id": "req_1",
            "endpoint": "ask",
            "principal": Principal("t1", "u", "k", Role.READER),
            "text": text,
            "scope": Scope(tenant_id="t1"),
            **fields,
        }
    )


def extraction_of(*lines: str, title: str | None) -> tuple[Extraction, list[ChunkDraft]]:
    """A block for each line, a heading for each that begins with "# ", and a passage for each section."""
    text = ""
    blocks: list[Block] = []
    passages: list[ChunkDraft] = []
    path: tuple[str, ...] = ()
    for line in lines:
        text += "\n\n" if text else ""
        start, heading = len(text), line.startswith("# ")
        text += line.removeprefix("# ")
        blocks.append(
            Block(BlockKind.HEADING if heading else BlockKind.PARAGRAPH, start, len(text), 1, () if heading else path)
        )
        path = (text[start:],) if heading else path
        first = start if heading or not passages else passages[-1].start_char
        shown = text[first:]
        passage = ChunkDraft(
            ordinal=len(passages) - (first != start),
            start_char=first,
            end_char=len(text),
            page_start=1,
            page_end=1,
            heading_path=path,
            text=shown,
            embedding_text=shown,
            token_count=len(shown.split()) + 1,
        )
        passages = [*(passages if first == start else passages[:-1]), passage]
    return Extraction(MediaType.TEXT, title, text, (PageRange(1, 0, len(text)),), tuple(blocks)), passages


def index(library: Library, filename: str, *lines: str, title: str | None = None) -> str:
    """The id of a new document of these lines; see `extraction_of`."""
    created = library.upload("\n".join((filename, *lines)), filename=filename)
    extraction, passages = extraction_of(*lines, title=title)
    job, jobs = library.claim(), JobRepository(library.database)
    written = jobs.commit(
        job,
        extraction=extraction,
        passages=passages,
        vectors=vectors_of(len(passages)),
        generation=library.generation,
        embedding_tokens=sum(passage.token_count for passage in passages),
    )
    assert written.written
    return created.id
