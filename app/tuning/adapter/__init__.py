"""Trains the LoRA adapter of the default generator."""
