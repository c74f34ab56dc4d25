"""Tests of app.verification."""
