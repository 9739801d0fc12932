"""The scalar expressions of a query, without SQL. `lower` writes them in the language of an engine."""
