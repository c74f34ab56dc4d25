"""Making what the generator's adapter trains on, in the application's own prompts. Nothing that serves imports it."""
