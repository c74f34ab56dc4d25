"""Tests of app.answering.understanding.followup."""
