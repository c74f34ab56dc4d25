"""The databases these tests run on."""

from tests.databases import database, migrated_file, postgres_database, sqlite_database

__all__ = ["database", "migrated_file", "postgres_database", "sqlite_database"]
