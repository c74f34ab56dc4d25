"""An `Answerer` made of few parts, for tests."""

from collections.abc import Callable

from app.answering.answerer import Answerer
from app.answering.closing import CitationRecord, Closing
from app.answering.context import ContextBuilder
from app.answering.conversations import Conversations
from app.answering.generating.generator import Generator
from app.answering.generating.prompt_layout import DEFAULT_WORDING
from app.answering.generating.summaries import Summariser
from app.answering.metering.meter import Meters
from app.answering.question import Limits
from app.answering.quoting.quotable import QuotesAs
from app.answering.quoting.quoter import Quoter
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.overviews import Overviews
from app.answering.retrieving.retriever import Retriever
from app.answering.understanding.catalogue_replies import CatalogueReplies
from app.answering.understanding.followup.model import Rewriter
from app.answering.understanding.understanding import Understanding
from app.answering.verification.metered_models import Verification
from app.db.contents import ContentRepository
from app.usage.ledger.ledger import Ledger
from generation.ports import Engine, Tokenizer
from tests.app.answering.absent import NoConversations, NoOverviews, NoRecord, NoReplies, WordsAlone


def make_answerer(
    *,
    finder: Finder,
    engine: Engine,
    tokenizer: Tokenizer,
    contents: ContentRepository,
    ledger: Ledger,
    limits: Limits,
    summariser: Summariser | None = None,
    quoter: Quoter | None = None,
    quotes: QuotesAs = QuotesAs.NOTHING,
    quote_unverified: bool = False,
    conversations: Conversations | None = None,
    citations: CitationRecord | None = None,
    rewriter: Rewriter | None = None,
    verification: Verification | None = None,
    replies: CatalogueReplies | None = None,
    overviews: Overviews | None = None,
    wrap_contexts: Callable[[ContextBuilder], ContextBuilder] = lambda contexts: contexts,
) -> Answerer:
    """Make an answerer; `wrap_contexts` may replace its context builder by one that also times it, say."""
    contexts = ContextBuilder(
        engine=engine,
        tokenizer=tokenizer,
        limits=limits,
        wording=DEFAULT_WORDING,
        contents=contents,
        summariser=summariser,
        quoter=quoter,
    )
    conversations = conversations or NoConversations()
    return Answerer(
        understanding=Understanding(conversations=conversations, replies=replies or NoReplies(), rewriter=rewriter),
        retriever=Retriever(finder=finder, overviews=overviews or NoOverviews(), min_evidence=limits.min_evidence),
        contexts=wrap_contexts(contexts),
        generator=Generator(engine=engine, tokenizer=tokenizer, limits=limits),
        meters=Meters(ledger=ledger, engine=engine, tokenizer_revision="0"),
        verification=verification or WordsAlone(),
        closing=Closing(ledger=ledger, conversations=conversations, citations=citations or NoRecord()),
        quotes=quotes,
        quote_unverified=quote_unverified,
    )
