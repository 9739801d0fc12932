"""Checks a query without a pipeline: what runs, what does not, and why."""

from recapture.tools.check_query.checking import CheckedQuery, Refusal, as_document, check

__all__ = ["CheckedQuery", "Refusal", "as_document", "check"]
