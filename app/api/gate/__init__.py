"""ASGI middleware that every request passes before its route: drain, security headers, gate, idempotency."""
