"""Tests of app.mcp."""
