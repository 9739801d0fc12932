"""The audit of a run: suites of expectations, and built-in checks on slices."""
