"""The databases these tests run on."""

from tests.databases import empty_database, migrated_database

__all__ = ["empty_database", "migrated_database"]
