"""The Spark SQL of a query: expressions as trees; aggregates and windows over them; statements as text."""
