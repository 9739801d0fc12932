"""What became of single events: found in the archive, and judged as a run judges them."""
