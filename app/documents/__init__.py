"""Documents: their original files, their rows, and the vector and word indexes built from them."""
