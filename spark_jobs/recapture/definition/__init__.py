"""The pipeline file."""
