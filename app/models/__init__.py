"""Models on disk: the defaults, how they are fetched and converted, and loading the configured ones."""
