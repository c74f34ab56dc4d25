"""Whether the engine works on this machine's GPU, and how fast, with models made on it: no weights, no downloads."""
