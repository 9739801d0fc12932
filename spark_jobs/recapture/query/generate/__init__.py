"""The Spark SQL of a query: values, aggregates, windows and statements as text."""
