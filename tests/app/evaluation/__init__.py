"""Tests of app.evaluation."""
