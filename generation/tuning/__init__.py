"""Training an adapter of the generator: not part of serving, needs peft."""
