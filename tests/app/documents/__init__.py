"""Tests of app.documents."""
