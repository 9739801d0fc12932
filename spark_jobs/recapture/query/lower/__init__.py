"""Engines: each writes the operations of a plan in its own language."""
