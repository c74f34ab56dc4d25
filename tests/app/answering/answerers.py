"""An `Answerer` made of few parts, for tests."""

from enum import StrEnum

from app.answering.answerer import Answerer
from app.answering.closing import CitationRecord, Closing
from app.answering.conversations.conversations import Conversations
from app.answering.fitting import Fitting
from app.answering.generating.generator import Generator
from app.answering.generating.model_class import ASKING, ModelClass
from app.answering.generating.prompts import Prompts
from app.answering.generating.strategy import Generating
from app.answering.generating.summaries import Summariser
from app.answering.metering.meter import Meters
from app.answering.question import AnswerDefaults
from app.answering.quoting.passage_reader import PassageReader
from app.answering.quoting.strategy import Quoting
from app.answering.retrieving.finder import Finder
from app.answering.retrieving.overviews import Overviews
from app.answering.retrieving.retriever import Retriever
from app.answering.states.strategy import Strategy
from app.answering.understanding.catalogue_replies import CatalogueReplies
from app.answering.understanding.followup.model import Rewriter
from app.answering.understanding.understanding import Understanding
from app.answering.verification.metered_models import Verification
from app.db.contents import ContentRepository
from app.usage.ledger.ledger import Ledger
from generation.ports import Engine, Tokenizer
from retrieval.memo import Memo
from tests.app.answering.absent import NoConversations, NoOverviews, NoRecord, NoReplies, WordsAlone
from tests.retrieval.fakes import HashingEmbedder


class QuotesAs(StrEnum):
    """Which questions quotes are the answer to: all, all that they can answer, or none."""

    ONLY = "only"
    FIRST = "first"
    NOTHING = "nothing"


def make_answerer(
    *,
    finder: Finder,
    engine: Engine,
    tokenizer: Tokenizer,
    contents: ContentRepository,
    ledger: Ledger,
    limits: AnswerDefaults,
    summariser: Summariser | None = None,
    passage_reader: PassageReader | None = None,
    quotes: QuotesAs = QuotesAs.NOTHING,
    quote_unverified: bool = False,
    sure_quotes_answer: bool = False,
    model_class: ModelClass = ModelClass.QUOTES,
    conversations: Conversations | None = None,
    citations: CitationRecord | None = None,
    rewriter: Rewriter | None = None,
    verification: Verification | None = None,
    replies: CatalogueReplies | None = None,
    overviews: Overviews | None = None,
    fitting: Fitting | None = None,
) -> Answerer:
    """Make an answerer."""
    memo = Memo()
    window = engine.info.context_window
    quoting = Quoting(
        passage_reader=passage_reader or PassageReader(embedder=HashingEmbedder(max_tokens=64)),
        tokenizer=tokenizer,
        limits=limits,
        window=window,
    )
    asking = ASKING[model_class]
    generating = Generating(
        generator=Generator(engine=engine, tokenizer=tokenizer, limits=limits, wording=asking.wording),
        prompts=Prompts(engine=engine, tokenizer=tokenizer, limits=limits, asking=asking, overflow=summariser),
        passage_reader=passage_reader,
        verification=verification or WordsAlone(),
        memo=memo,
        quote_unverified=quote_unverified,
        sure_quotes_answer=sure_quotes_answer,
    )
    strategies: dict[QuotesAs, tuple[Strategy, ...]] = {
        QuotesAs.ONLY: (quoting,),
        QuotesAs.FIRST: (quoting, generating),
        QuotesAs.NOTHING: (generating,),
    }
    conversations = conversations or NoConversations()
    return Answerer(
        understanding=Understanding(conversations=conversations, replies=replies or NoReplies(), rewriter=rewriter),
        retriever=Retriever(finder=finder, overviews=overviews or NoOverviews(), min_evidence=limits.min_evidence),
        fitting=fitting or Fitting(contents),
        strategies=lambda: strategies[quotes],
        quoting=quoting,
        meters=Meters(ledger=ledger, engine=engine, tokenizer_revision="0"),
        closing=Closing(ledger=ledger, conversations=conversations, citations=citations or NoRecord()),
        memo=memo,
    )
