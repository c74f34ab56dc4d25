"""Watched questions: asked again when their passages differ, with an event where the evidence does."""
