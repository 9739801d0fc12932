"""The audit: suites of expectations, and checks on slices."""
