"""Compare the output of a live job with published rows, and give each difference a reason."""
