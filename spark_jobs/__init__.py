"""Recapture: history recomputed from Event Hubs Capture with the time handling of Azure Stream Analytics."""

__version__ = "0.1.0"
