"""ASGI middleware that every request passes before its route."""
