"""The relations and scalar expressions of a compiled query, as values, and their rewrites. `evaluate` computes them."""
