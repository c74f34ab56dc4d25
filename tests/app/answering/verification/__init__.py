"""Tests of app.answering.verification."""
