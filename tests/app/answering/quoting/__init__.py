"""Tests of app.answering.quoting."""
