"""Questions that a document answers, made from its own sentences and checked by asking them."""
