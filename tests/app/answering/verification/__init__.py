"""Tests of app.answering.answerer.verification."""
