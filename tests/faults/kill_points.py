"""The points of an ingestion at which a server is killed: before, inside and after everything that is made durable."""

from tests.faults.forked import KillPoint

POINTS: tuple[KillPoint, ...] = (
    # an upload: spooled, noted, stored, then its rows, then the answer
    KillPoint("app.documents.spool:Spool.receive", "return"),
    KillPoint("app.documents.intake:Intake.accept", "call"),
    KillPoint("app.db.originals:OriginalRepository.begin", "return"),
    KillPoint("app.documents.adapters.folder_originals:FolderOriginals.put", "call"),
    KillPoint("app.documents.adapters.folder_originals:FolderOriginals.put", "return"),
    KillPoint("app.db.originals:named", "return"),
    KillPoint("app.db.documents:DocumentRepository.create", "return"),
    KillPoint("app.documents.intake:Intake.accept", "return"),
    # a job: claimed, read, chunked, embedded
    KillPoint("app.db.jobs:JobRepository.claim_several", "return", 2),
    KillPoint("ingestion.extraction:LocalExtractor.extract", "call"),
    KillPoint("ingestion.extraction:LocalExtractor.extract", "return"),
    KillPoint("ingestion.chunking:Chunker.chunk", "return"),
    KillPoint("app.usage.ledger.ledger:Ledger.reserve_in", "return"),
    KillPoint("tests.retrieval.fakes:HashingEmbedder.embed_documents", "call"),
    KillPoint("tests.retrieval.fakes:HashingEmbedder.embed_documents", "return"),
    # the keys of its chunks, then its commit: text, chunks, the old version's end, the bill
    KillPoint("app.db.jobs:JobRepository.take_keys", "return"),
    KillPoint("app.db.published_rows:write_texts", "return"),
    KillPoint("app.db.published_rows:write_chunks", "return"),
    KillPoint("app.db.removal:remove_chunks", "return"),
    KillPoint("app.usage.ledger.ledger:Ledger.settle_in", "return"),
    KillPoint("app.db.jobs:JobRepository.commit_all", "return"),
    # what follows it in memory and on disk
    KillPoint("app.documents.adapters.faiss_vectors:FaissVectors.forget", "call"),
    KillPoint("app.documents.adapters.faiss_vectors:FaissVectors.add", "call"),
    KillPoint("app.documents.adapters.faiss_vectors:FaissVectors.add", "return"),
    KillPoint("retrieval.index_file:save", "call"),
    KillPoint("retrieval.index_file:save", "return"),
    # a replacement and a deletion
    KillPoint("app.db.documents:DocumentRepository.add_version", "return"),
    KillPoint("app.db.documents:DocumentRepository.delete", "call"),
    KillPoint("app.db.documents:DocumentRepository.delete", "return"),
    KillPoint("app.documents.adapters.folder_originals:FolderOriginals.delete", "call"),
    KillPoint("app.documents.adapters.folder_originals:FolderOriginals.delete", "return"),
    KillPoint("app.db.originals:OriginalRepository.end", "call"),
    KillPoint("app.db.originals:OriginalRepository.end", "return"),
)
