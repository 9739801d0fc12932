"""The error for a part of a query that needs Spark."""


class NotEvaluatedError(Exception):
    """A part of a query that only Spark evaluates; the message says which."""
