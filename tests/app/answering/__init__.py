"""Tests of app.answering.answerer."""
