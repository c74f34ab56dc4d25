"""The HTTP contract: routes, schemas, errors."""
