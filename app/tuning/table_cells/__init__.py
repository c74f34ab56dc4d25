"""Fits the weights of `app.answering.quoting.asked_cells` on questions that one cell of a table answers."""
