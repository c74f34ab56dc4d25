"""Training and calibration of the models Footnote ships. The serving code does not import it."""
