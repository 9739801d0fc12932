"""Advice on the tolerances of a job: what became of the events of a range with each of many settings."""
