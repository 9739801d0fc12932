"""Why a part of a query is not evaluated without Spark."""


class NotEvaluatedError(Exception):
    """A part of a query that only Spark evaluates; the message says which."""
