"""Tests of app.answering.answers."""
