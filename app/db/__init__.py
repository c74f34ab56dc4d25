"""SQL: the tables, the session and one repository per noun. SQL is the truth; every other store is rebuilt from it."""
