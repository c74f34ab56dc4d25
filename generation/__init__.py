"""Token ids in, token ids out: the engine knows no documents."""
