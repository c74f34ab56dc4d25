"""Request and response bodies, from which the OpenAPI document is generated."""
