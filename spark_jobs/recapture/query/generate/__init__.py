"""Relations of a query, over typed expressions: aggregates, windows, JOINs and SELECTs, and their Spark SQL."""
