"""The plan of a query: typed values without any SQL, which `lower` writes for an engine."""
