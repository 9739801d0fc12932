"""Which slices of a pipeline are published, blocked, stale or missing: their states, and pages that show them."""
