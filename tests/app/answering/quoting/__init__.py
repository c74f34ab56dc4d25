"""Tests of app.answering.answerer.quoting."""
