"""The database: connections, tables, migrations, and one repository per kind of row. SQL is the source of truth."""
