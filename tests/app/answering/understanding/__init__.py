"""Tests of app.answering.understanding."""
