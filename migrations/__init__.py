"""The history of the database schema, run by `app.db.migration`. Inside the package, so that a wheel can migrate."""
