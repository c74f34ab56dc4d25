"""The HTTP API: routes, request and response bodies, errors, middleware."""
