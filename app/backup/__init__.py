"""Backup and restore of an installation as one file, and the lock of the data dir."""
