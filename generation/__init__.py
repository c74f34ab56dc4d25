"""The inference engine: generates token ids from token ids and has no notion of documents."""
