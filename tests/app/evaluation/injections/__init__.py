"""Tests of app.evaluation.injections.documents."""
