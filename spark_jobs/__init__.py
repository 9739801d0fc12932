"""Recapture: history recomputed from Event Hubs Capture with the time handling of Azure Stream Analytics."""

from spark_jobs._version import version as __version__

__all__ = ["__version__"]
