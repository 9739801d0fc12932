"""Compare the rows of published slices with other rows, on disk."""
