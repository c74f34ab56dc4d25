"""One reader per family of formats: a file's path and the limits to its `Extraction`."""
