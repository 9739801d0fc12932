"""Recapture: history recomputed from Event Hubs Capture with the time handling of Azure Stream Analytics."""

from recapture._version import version as __version__

__all__ = ["__version__"]
