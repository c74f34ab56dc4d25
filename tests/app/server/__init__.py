"""Tests of app.server.http_server."""
