"""Tests of app.evaluation.injections."""
