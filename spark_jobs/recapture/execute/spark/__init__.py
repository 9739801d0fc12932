"""Rows computed in Spark: in a session of this process, or on a cluster."""
