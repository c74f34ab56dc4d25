"""Fits the weights of `app.answering.quoting.score` on training questions that are asked of whole collections."""
