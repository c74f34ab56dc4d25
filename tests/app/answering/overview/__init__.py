"""Tests of app.answering.overview."""
