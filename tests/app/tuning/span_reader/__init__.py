"""Tests of app.tuning.span_reader."""
