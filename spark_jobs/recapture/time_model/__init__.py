"""The time handling of Azure Stream Analytics as pure functions on Arrow and NumPy: no I/O, no Spark."""
