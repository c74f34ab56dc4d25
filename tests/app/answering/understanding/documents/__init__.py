"""Tests of app.answering.understanding.documents."""
