"""Rows computed in processes of this machine, without Spark."""
