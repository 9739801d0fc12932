"""Names of metrics for people. Pages show them with the metric's own name behind them, and each number once."""

from collections.abc import Mapping

from recapture.time_model.metrics import WATERMARK, WATERMARK_DELAY

TITLES = {
    "InputEvents": "events that arrived",
    "InputEventBytes": "bytes of their bodies",
    "InputEventsSourcesTotal": "blobs read",
    "DuplicateEvents": "duplicates",
    "on_time": "on time",
    "late_adjusted": "late, time adjusted",
    "late_dropped": "late, dropped",
    "LateInputEvents": "late in all",
    "out_of_order_adjusted": "out of order, time adjusted",
    "out_of_order_dropped": "out of order, dropped",
    "DroppedOrAdjustedEvents": "out of order in all",
    "early_adjusted": "early, time adjusted",
    "early_dropped": "early, dropped",
    "EarlyInputEvents": "early in all",
    "invalid_timestamp": "without a valid time",
    "InvalidInputTimeStamp": "without a valid time in all",
    "malformed": "malformed",
    "DeserializationError": "malformed in all",
    "SequenceGaps": "gaps in the sequence numbers",
    "DamagedBlobs": "damaged blobs",
    "OutputEvents": "rows",
    "UnanchoredSessions": "sessions cut at multiples of their longest duration",
    WATERMARK_DELAY: "watermark delay",
    WATERMARK: "watermark at the end",
}
"""Names for people, in the order in which pages show them."""
SUMS = {
    "LateInputEvents": ("late_adjusted", "late_dropped"),
    "DroppedOrAdjustedEvents": ("out_of_order_adjusted", "out_of_order_dropped"),
    "EarlyInputEvents": ("early_adjusted", "early_dropped"),
    "InvalidInputTimeStamp": ("invalid_timestamp",),
    "DeserializationError": ("malformed",),
}
"""ASA's metrics that count the events of verdicts, and perhaps others; with these verdicts."""
EXACT = ("DroppedOrAdjustedEvents", "InvalidInputTimeStamp", "DeserializationError")
"""Those that count no other events."""


def titled(values: Mapping[str, float | None]) -> list[tuple[str, str, float]]:
    """Return the metrics that are not 0: their names for people, their own names, and their values.

    A metric of ASA that says the same as one verdict is shown with it, under the name of ASA.
    """
    hidden = {name_behind(verdict, values) for verdicts in SUMS.values() for verdict in verdicts} & SUMS.keys()
    return [
        (title, name_behind(name, values), value)
        for name, title in TITLES.items()
        if (value := values.get(name)) and name not in hidden
    ]


def name_behind(verdict: str, values: Mapping[str, float | None]) -> str:
    """Return the name of ASA's metric that equals the count of a verdict, or else the verdict's own.

    `values` need not have the metrics of EXACT: they count no other events than those of their verdicts.
    """
    for name, verdicts in SUMS.items():
        if verdict in verdicts:
            others = any(values.get(other) for other in verdicts if other != verdict)
            same = not others if name in EXACT else values.get(name) == values.get(verdict)
            return name if same else verdict
    return verdict
