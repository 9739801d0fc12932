"""The published Delta tables."""
