"""Tests of app.answering.formats.answer_formats."""
