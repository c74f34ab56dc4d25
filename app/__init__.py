"""Where ingestion, retrieval and generation meet: HTTP, SQL, CLI, ledger, the answering use case."""
